"""ZeroGPU with a fake `spaces` module that pickles arguments and results."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from gpt import Generation, SamplingParams, get_model, load_model
from gpt import inference as zero
from gpt.documents import generation
from gpt.models import loading
from gpt.models.loading import LoadedModel, best_device


def gpu(task: Callable[..., Any]) -> Callable[..., Any]:
    """Fake spaces.GPU."""

    def call(*args: object, **kwargs: object) -> object:
        args, kwargs = pickle.loads(pickle.dumps((args, kwargs)))
        return pickle.loads(forbid_tensors(pickle.dumps(task(*args, **kwargs))))

    def stream(*args: object, **kwargs: object) -> Iterator[object]:
        args, kwargs = pickle.loads(pickle.dumps((args, kwargs)))
        for item in task(*args, **kwargs):
            yield pickle.loads(forbid_tensors(pickle.dumps(item)))

    wrapped = stream if inspect.isgeneratorfunction(task) else call
    wrapped.on_zero_gpu = True
    return wrapped


def forbid_tensors(data: bytes) -> bytes:
    assert b"torch" not in data, "a tensor would cross the border"
    return data


@pytest.fixture(params=["elsewhere", "zero-gpu"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "zero-gpu":
        monkeypatch.setenv("SPACES_ZERO_GPU", "true")
        monkeypatch.setattr(zero, "spaces", types.SimpleNamespace(GPU=gpu), raising=False)
    else:
        monkeypatch.delenv("SPACES_ZERO_GPU", raising=False)
    return request.param


def test_a_decorated_function_runs_the_shared_model(place: str) -> None:
    shared = get_model()
    expected = shared.model(torch.tensor([[1, 2, 3]], device=shared.device))

    @zero.on_gpu
    def logits(loaded: LoadedModel, ids: list[int]) -> list[float]:
        assert loaded is shared
        return loaded.model(torch.tensor([ids], device=loaded.device)).tolist()

    answer = logits(shared, ids=[1, 2, 3])
    assert hasattr(logits, "on_zero_gpu") == (place == "zero-gpu")
    assert answer == expected.tolist()


def test_zero_gpu_generation_equals_local_generation_in_tokens_logits_and_attention(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "GPU_DEVICE", "cpu")
    remote = zero.on_gpu(inspect.unwrap(generation.zero_gpu_replies))
    monkeypatch.setattr(generation, "zero_gpu_replies", remote)
    loaded, params = get_model(), SamplingParams(temperature=1.0, seed=4)
    alone, document = Generation(loaded, "Once upon"), Generation(loaded, "Once upon")
    expected = list(alone.steps(params, 6, local=True))
    assert list(document.steps(params, 6)) == expected
    list(alone.steps(params, 3, local=True)), list(document.steps(params, 3))
    assert document.ids == alone.ids
    assert alone.n_read == len(document.ids) - 1
    assert document.n_read == alone.n_read + (place == "zero-gpu")  # the GPU has also read the last token
    alone.read(), document.read()
    for position in range(document.n_read):
        torch.testing.assert_close(document.logits(position), alone.logits(position))
    torch.testing.assert_close(document.attn_weights(3), alone.attn_weights(3))
    document.undo()
    assert len(document.ids) == len(alone.ids) - 3


def test_each_shared_model_has_one_copy_on_the_gpu_of_a_zero_gpu_space(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "GPU_DEVICE", "meta")
    loaded = load_model("untrained")
    assert best_device().type == ("cpu" if place == "zero-gpu" else best_device().type)
    assert loading.gpu_copy(loaded).model.wte.weight.device.type == "meta"
    assert loading.gpu_copy(loaded).model is loading.gpu_copy(loaded).model
    assert loaded.model.wte.weight.device.type != "meta"


@pytest.mark.thorough
def test_spaces_is_imported_before_torch_and_only_there() -> None:
    script = (
        "import sys, types\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'spaces':\n"
        "            print('torch' in sys.modules)\n"
        "            sys.modules[name] = types.ModuleType(name)\n"
        "            from importlib.machinery import ModuleSpec\n"
        "            return ModuleSpec(name, self)\n"
        "    def create_module(self, spec): return None\n"
        "    def exec_module(self, module): module.GPU = lambda task: task\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import gpt\n"
    )
    environment = {"SPACES_ZERO_GPU": "true", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
    if not zero.on_zero_gpu():
        assert not hasattr(zero, "spaces")


def test_models_are_not_packed_on_zero_gpu_and_int8_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    loaded = load_model("stories", device="cpu", precision="half")
    assert all(parameter.dtype == torch.bfloat16 for parameter in loaded.model.parameters())
    copied = copy.deepcopy(loaded.model).to("meta")
    assert {parameter.device.type for parameter in copied.parameters()} == {"meta"}
    assert {parameter.device.type for parameter in loaded.model.parameters()} == {"cpu"}
    with pytest.raises(ValueError, match="int8 is only for CPUs: choose half on ZeroGPU"):
        load_model("stories", device="cpu", precision="int8")
