import ast
import re
from pathlib import Path

import pytest

import gpt
from components.api import error
from components.errors import localize_error
from components.problem_texts import PROBLEMS
from components.state.settings import number
from gpt import SamplingParams, get_model

FOLDER = Path(gpt.__file__).parent
# What only a program that calls gpt can meet, never somebody in front of the page.
FOR_PROGRAMS = {
    "models/checkpoints/hugging_face.py": ["transformers' GPT-2 has learned positions only, not {}"],
    "models/hub.py": ["it arrived damaged"],
    "cache.py": None,
    "trace.py": None,
    "model.py": ['approximate must be "tanh" or "none", not {}', "attention_mask must be {}, not {}"],
    "sampling.py": [
        "u must lie in [0, 1), not {}",
        "logits must be one row, a number per token, not of shape {}",
        "previous_ids must be token ids, whole numbers",
    ],
    "models/loading.py": ["precision must be one of {}, not {}"],
    "edits.py": [
        "a patch of shape {} does not fit: each text needs {} numbers",
        "drop_positions must be True or False, not {}",
        "a head is named by its layer and its number, not {}",
        "a layer is named by its number, not {}",
    ],
    "analysis/__init__.py": [
        "an analysis is of one text: this trace holds {}",
        "position {} was not traced: the trace has positions 0 to {}",
        "predictions over vocabularies of {} and {} tokens cannot be compared",
        "states of shape {} cannot be compared with {}",
    ],
    "analysis/heads.py": None,
    "analysis/lens.py": None,
    "analysis/residual.py": ["this model has no position embeddings to compare: its positions are rotary"],
    "documents/beam_search.py": ["no beam is finished yet", "the search is done"],
    "documents/branches.py": [
        "a sampled token has settings with a seed, and no other token has",
        "a token is {}, not {}",
    ],
    "documents/branch_cache.py": ["branch_memory must be at least 0 bytes, not {}"],
    "training/learner.py": ["dropout must be 0 here, not {}: the numbers would not repeat"],
    "training/own_text.py": ["units must be one of {}, not {}"],
    "experiments/activations.py": ["the slope of {} does not change its sign between {} and {}"],
    "experiments/normalisation.py": ["rows must be (n, C) with C of at least 2, not {}"],
    "experiments/positions.py": ["trained_length must be above 8 and below tested_length, not {} and {}"],
    "experiments/scaling.py": ["{} is of a run with another recipe: delete it to begin anew"],
    "experiments/shortcuts.py": ["{} must be at least 1, not {}"],
    "experiments/speed.py": ["length must lie in 1..{}, not {}"],
    "experiments/tying.py": ["token id {} does not exist: the model has 0 to {}"],
    "training/__init__.py": None,
    "training/corpus.py": None,
    "training/recipe.py": None,
    "training/run_folder.py": None,
    "training/trainer.py": None,
    "training/evaluation.py": None,  # the command line
}


def template(node: ast.expr) -> str | None:
    """A string with {} where something is filled in."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.BinOp):
        return f"{template(node.left) or '{}'}{template(node.right) or '{}'}"
    return None


def sentences(path: Path) -> set[str]:
    """Every sentence that a file raises."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        called = isinstance(node, ast.Call) and ast.unparse(node.func)
        if called == "super().__init__":
            found |= {template(argument) for argument in node.args if isinstance(argument, ast.JoinedStr)}
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            alone = ast.unparse(node.exc.func) != "_refused"
            found |= {said if alone else f"{{}} {said}" for one in node.exc.args if (said := template(one))}
    return found


RAISED = {str(path.relative_to(FOLDER)): sentences(path) for path in sorted(FOLDER.rglob("*.py"))}


@pytest.mark.parametrize("path", [path for path, said in RAISED.items() if said])
def test_whatever_gpt_raises_can_be_said_in_chinese(path):
    for place, said in FOR_PROGRAMS.items():
        if path.startswith(place):
            if said is None:
                return
            assert set(said) <= RAISED[path], "no longer raised"
            assert not set(said) & PROBLEMS.keys()
            assert RAISED[path] - set(said) <= PROBLEMS.keys()
            return
    assert RAISED[path] <= PROBLEMS.keys()


def test_nothing_is_translated_that_nobody_says():
    said = set().union(*RAISED.values())
    settings = {sentence for sentence in PROBLEMS if sentence.startswith("{} must be a")}  # see the test of numbers
    more = {"{} is one of more than {}"}  # one of two in an expression
    assert PROBLEMS.keys() - said - settings - more == set()


@pytest.mark.parametrize("english", PROBLEMS)
def test_what_stood_in_the_sentence_stands_in_the_other(english):
    values = [f"«{n}»" for n in range(english.count("{}"))]
    chinese = localize_error(ValueError(english.format(*values)), "zh")
    assert re.search("[\u4e00-\u9fff]", chinese)
    assert sorted(re.findall("«.»", chinese)) == values
    assert localize_error(ValueError(english.format(*values)), "en") == english.format(*values)


@pytest.mark.parametrize(
    ("value", "low", "high", "name", "chinese"),
    [
        (7, 0, 2, "temperature", "temperature 必须是 0 到 2 的数，而不是 7"),
        ("x", 0, 2, "temperature", "temperature 必须是 0 到 2 的数，而不是 str"),
        (1.5, 0, 100, "top_k", "top_k 必须是 0 到 100 的整数，而不是 1.5"),
        (-1, 0, float("inf"), "seed", "种子必须是不小于 0 的整数，而不是 -1"),
    ],
)
def test_numbers_out_of_range(value, low, high, name, chinese):
    with pytest.raises(ValueError, match=name) as problem:
        number(name, value, low, high)
    assert localize_error(problem.value, "zh") == chinese


def test_real_problems():
    for doing, chinese in (
        (lambda: SamplingParams(top_p=2), "top_p 必须大于 0 且不超过 1，而不是 2"),
        (lambda: get_model("nobody"), "没有模型 'nobody'：已知的模型有 "),
    ):
        with pytest.raises(ValueError) as problem:  # noqa: PT011  its words are what is tested
            doing()
        assert localize_error(problem.value, "zh").startswith(chinese)


def test_what_the_page_shows_at_its_edge_is_in_its_language_and_holds_no_tag():
    problem = ValueError("there is no file or folder <b>x</b>")
    assert error(problem, "zh").message == "没有文件或文件夹 &lt;b&gt;x&lt;/b&gt;"
    assert error(problem).message == "there is no file or folder &lt;b&gt;x&lt;/b&gt;"


def test_what_nobody_has_translated_stays_as_it_is():
    assert localize_error(OSError("disk full"), "zh") == "disk full"
    assert localize_error("上下文已满", "zh") == "上下文已满"


def test_the_sentence_that_says_most_is_taken():
    said = "a.pt is damaged: it should hold a dict, not a list"
    assert localize_error(said, "zh") == "a.pt 已损坏：里面应该是 dict，而不是 list"
    assert localize_error("a\nb.pt is damaged: {0} {x}", "zh") == "a\nb.pt 已损坏：{0} {x}"


def test_a_stranger_cannot_keep_the_server_busy_with_a_long_sentence():
    said = "the file is of version '" + "a=b: " * 1_000_000  # comparing it would take hours
    assert localize_error(said, "zh") == said
