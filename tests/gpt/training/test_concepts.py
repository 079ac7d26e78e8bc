import numpy as np
import pytest
import torch

from gpt import load_model, save_model
from gpt.models.loading import CONCEPTS
from tests.gpt.fake_models import tiny_model
from tools.autoencoder import Autoencoder
from tools.concepts import main

STORIES = "\n<|endoftext|>\n".join(f"the cat and the dog saw {n} birds in the tree" for n in range(60))


@pytest.fixture
def files(tmp_path):
    loaded = tiny_model()
    save_model(tmp_path / "model", loaded.model, loaded.tokenizer)
    (tmp_path / "stories.txt").write_text(STORIES)
    return tmp_path


def run(files, *options, tokens=1500):
    words = [files / "model", files / "stories.txt", "--out", files / "out", "--width", 32, "--active", 4]
    return main([*map(str, words), "--tokens", str(tokens), *options])


@pytest.mark.thorough
def test_an_autoencoder_learns_the_directions_that_a_stream_is_made_of():
    generator = torch.Generator().manual_seed(0)
    directions = torch.linalg.qr(torch.randn(16, 12, generator=generator)).Q.T

    def batch():
        which = torch.rand(500, 12, generator=generator).topk(2).indices
        return directions[which].sum(1)

    autoencoder = Autoencoder(16, 24, 2, generator)
    losses = [autoencoder.update(batch(), 3.0) for _ in range(300)]
    assert losses[0] > 0.3
    assert np.mean(losses[-20:]) < 0.1
    similarity = (directions @ autoencoder.decoder.detach().T).max(dim=1).values
    assert similarity.min() > 0.9


@pytest.mark.thorough
def test_the_command_writes_concepts_that_the_model_is_loaded_with(files):
    assert run(files) == 0
    assert load_model(files / "model").concepts is None
    (files / "out" / CONCEPTS).rename(files / "model" / CONCEPTS)
    loaded = load_model(files / "model")
    (layer, dictionary), *_ = loaded.concepts.dictionaries.items()
    assert sorted(loaded.concepts.dictionaries) == [0, 1]  # one quarter, one half and three quarters of two layers
    assert dictionary.encoder.shape == (32, 16)
    feature = int(dictionary.share.argmax())
    (snippet, *_) = loaded.concepts.snippets(layer, feature, loaded.tokenizer)
    strongest = snippet.ids[int(np.argmax(snippet.tint))]
    assert max(snippet.tint) == 1
    assert strongest in loaded.concepts.text.tolist()
    assert ((0 <= dictionary.promotes) & (dictionary.promotes < 260)).all()
    card = (files / "out" / "concepts.md").read_text()
    assert "32 features, 4 of which are active" in card
