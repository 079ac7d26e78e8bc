"""Vocabularies and chat templates of published models match `tokenizers` and transformers. Needs ../shared/real."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from jinja2 import TemplateError
from tokenizers import Tokenizer
from transformers import AutoTokenizer
from transformers.utils.chat_template_utils import render_jinja_template

from gpt.chat import ChatTemplate
from gpt.models.checkpoints.hugging_face_tokenizer import HuggingFaceTokenizer
from gpt.models.checkpoints.vocabularies import find_vocabulary
from tests.gpt.models.tokenizer_families import texts

REAL = Path(__file__).resolve().parents[4] / "shared" / "real"
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not REAL.is_dir(), reason="../shared/real is not there"),
]

# Rows of the models' embeddings; for Gemma 3 and SmolLM2 without the tokens added beyond them.
ROWS = {
    "gemma3": 262144,
    "gpt2": 50257,
    "llama2": 32000,
    "mistral": 32768,
    "opt": 50272,
    "phi-2": 51200,
    "phi-3-mini": 32064,
    "pythia": 50304,
    "qwen2.5-0.5b": 151936,
    "qwen3": 151936,
    "smollm2": 49152,
    "tinyllama": 32000,
}
ENDS = {"gpt2": {50256}, "opt": {2}, "phi-3-mini": {32000, 32001, 32007}, "qwen2.5-0.5b": {151643, 151645}}
PREFIXES = {"gemma3": (2,), "llama2": (1,), "mistral": (1,), "opt": (2,), "tinyllama": (1,)}
MORE_TEXTS = [
    "Hello, I am a language model. 'Tis don't I'LL",
    "def f(x):\n    return x ** 2  # 3.14\n\n\tif x:\n\t\tpass\n",
    "每一天都有新的开始。今天是2024年11月25日，气温12℃。",
    "👋🏽 👨‍👩‍👧 🇨🇭 🙂🙂",
    "   \n\n \t  x      y" + " " * 60 + "z",
    "0 12 345 6789 1234567890 3.14159 ١٢٣ ½",
    "e\u0301 o\u0308\u0323 \u1100\u1161 \u212b ﬁ",
    "\x00\x01\x1b[0m\x7f\u200b\ufeff",
    "[PAD] <pad> <|im_end|> </s><s> <unk> <0x41> [INST] <|endoftext|><think>",
    "a▁b ▁ Ġ Ċ",
    " ",
    "",
]


@pytest.fixture(scope="module", params=ROWS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def ours(name: str) -> HuggingFaceTokenizer:
    found = find_vocabulary(REAL / "tokenizers" / name, ROWS[name])
    assert isinstance(found, HuggingFaceTokenizer)
    return found


@pytest.fixture(scope="module")
def theirs(name: str) -> Tokenizer:
    folder = REAL / "tokenizers" / name
    if (folder / "tokenizer.json").is_file():
        found = Tokenizer.from_file(str(folder / "tokenizer.json"))
    else:
        found = AutoTokenizer.from_pretrained(folder).backend_tokenizer
    found.no_truncation()
    found.no_padding()
    return found


def check_equal(ours: HuggingFaceTokenizer, theirs: Tokenizer) -> None:
    """Assert that ids, text and bytes of many strings are equal."""
    theirs.encode_special_tokens = True
    for text in [*texts(100), *MORE_TEXTS]:
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text) == ids
        decoded = theirs.decode(ids, skip_special_tokens=False)
        assert ours.decode(ids) == decoded
        data = b"".join(map(ours.token_bytes, ids)).decode("utf-8", "replace")
        assert (data.removeprefix(" ") if ours.strips_space else data) == decoded
    assert ours.decode(ours.encode("a\ud800b")) == "a\ufffdb"


def test_ids_text_and_bytes_are_the_librarys(ours: HuggingFaceTokenizer, theirs: Tokenizer, name: str) -> None:
    check_equal(ours, theirs)
    assert ours.prefix_ids == PREFIXES.get(name, ())
    assert ours.eot_ids >= ENDS.get(name, set())


# Chats

Messages = list[dict[str, str]]


def messages(*contents: str, system: str | None = None) -> Messages:
    """Return a chat in which these messages alternate."""
    roles = ("user", "assistant") * len(contents)
    turns = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=False)]
    return ([{"role": "system", "content": system}] if system else []) + turns


CHATS = [
    messages("Hi", "Good", "And now?"),
    messages("Hi  there, 你好!\n"),
    messages("a", "b c", "d", "e", "f 🙂"),
    messages("Hi", "Good", "And now?", system="Be brief."),
]


def templates() -> Iterator[tuple[str, str]]:
    """Return the chat templates by name. The collection's templates are meant to be read without their line breaks."""
    for file in sorted((REAL / "templates").glob("*.jinja")):
        source = file.read_text()
        yield file.stem, source if "{%-" in source else source.replace("    ", "").replace("\n", "")


def rendered(source: str, chat: Sequence[Mapping[str, str]], tokens: Mapping[str, str]) -> str:
    """Return the text of a chat as rendered by transformers."""
    return render_jinja_template([list(chat)], chat_template=source, add_generation_prompt=True, **tokens)[0][0]


@pytest.mark.parametrize(("title", "source"), templates(), ids=[title for title, _ in templates()])
def test_a_template_writes_what_transformers_writes_or_refuses_what_it_refuses(title: str, source: str) -> None:
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    for chat in (*CHATS[1:], messages("a", "b", system="c") + messages("d", system="e")):
        try:
            expected = rendered(source, chat, tokens)
        except TemplateError as error:
            with pytest.raises(ValueError, match=re.escape(str(error))):
                ChatTemplate(source, tokens).render(chat)
        else:
            assert ChatTemplate(source, tokens).render(chat) == expected


@pytest.mark.parametrize("name", [name for name in ROWS if name not in ("gemma3", "pythia", "opt")], indirect=True)
def test_a_chat_has_the_librarys_ids_and_its_turns_add_up(
    monkeypatch: pytest.MonkeyPatch, ours: HuggingFaceTokenizer, theirs: Tokenizer
) -> None:
    """They cannot add up if a template separates turns by characters that merge with their neighbours."""
    monkeypatch.setattr(ChatTemplate, "render", lambda self, chat: rendered(self.source, chat, self.tokens))
    tokens = {"bos_token": "", "eos_token": "", **ours.tokens}
    own = [("own", ours.chat.source)] if ours.chat else []
    theirs.encode_special_tokens = False
    n_added_up = 0
    for title, source in [*templates(), *own]:
        if title == "custom-2":  # does not write the content
            continue
        monkeypatch.setattr(ours, "chat", ChatTemplate(source, tokens))
        for chat in CHATS:
            ids = ours.encode_chat(chat)
            assert ids == theirs.encode(rendered(source, chat, tokens), add_special_tokens=False).ids
        first, whole = ours.encode_message("Hi"), ours.encode_chat(CHATS[0])
        further = ours.encode_message("And now?", first=False)
        assert first == ours.encode_chat(messages("Hi"))
        answer = whole[len(first) : len(whole) - len(further)]
        if whole[: len(first)] == first and ours.decode(answer).strip() == "Good":
            assert [*first, *answer, *further] == whole
            assert answer in (ours.encode_continuation(" Good"), ours.encode_continuation("Good"), ours.encode("Good"))
            n_added_up += 1
    assert n_added_up >= 12
