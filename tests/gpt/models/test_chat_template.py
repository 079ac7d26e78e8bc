"""Chats match transformers' rendering and encoding. Hostile templates and messages that imitate control tokens are
safe.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer

from gpt import Generation, generate
from gpt.chat import ChatTemplate
from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints.vocabularies import find_vocabulary
from gpt.models.loading import LoadedModel
from gpt.tokenizer import is_chat, prompt_ids, text_with_names
from tests.gpt.models.tokenizer_families import write_family

N_VOCAB = 1024
CHATML = """\
{%- if messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nYou are helpful.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'system' %}{% continue %}{% endif %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.role == 'assistant' %}{% generation %}{{ message.content }}{% endgeneration %}
    {%- else %}{{ message.content }}{% endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
LLAMA3 = """\
{{- bos_token }}
{%- set ns = namespace(first=true) %}
{%- for message in messages %}
    {%- if message.role not in ['system', 'user', 'assistant'] %}
        {{- raise_exception('Unknown role ' + message.role + '!') }}
    {%- endif %}
    {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' }}
    {%- if ns.first and message.role == 'system' %}{{- 'Year ' ~ strftime_now('%Y') ~ '\\n' }}{%- endif %}
    {%- set ns.first = false %}
    {{- message.content | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}
"""
GEMMA = """\
{{ bos_token }}
{%- if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{%- for message in messages %}
    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
    {%- endif %}
    {%- set role = 'model' if message.role == 'assistant' else message.role %}
    {{- '<start_of_turn>' + role + '\\n' + message.content | trim + '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}
"""
LLAMA2 = """\
{%- if messages[0].role == 'system' %}
    {%- set system = '<<SYS>>\\n' + messages[0].content | trim + '\\n<</SYS>>\\n\\n' %}
    {%- set messages = messages[1:] %}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {{- bos_token + '[INST] ' + (system | default('') if loop.first else '') }}
        {{- message.content | trim + ' [/INST]' }}
    {%- else %}
        {{- ' ' + message.content | trim + ' ' + eos_token }}
    {%- endif %}
{%- endfor %}
"""
JSON = "{{ bos_token }}{{ messages | tojson(indent=2) }}{{ {'a': 1, 'b': dict(c=2)} | tojson }}{{ range(3) | list }}"
TEMPLATES = {
    "smollm2": CHATML,
    "qwen": CHATML,
    "llama3": LLAMA3,
    "gemma": GEMMA,
    "pythia": JSON,
    "mistral": CHATML,
    "llama2": LLAMA2,
}
USER = {"role": "user", "content": "Hello, how are you?\nI'm  fine."}
CHATS: list[list[dict[str, str]]] = [
    [USER],
    [{"role": "user", "content": "  spaces around \n"}],
    [USER, {"role": "assistant", "content": "Good."}, {"role": "user", "content": "你好 é 🙂 <b>&amp;"}],
    [{"role": "user", "content": ""}],
]
SYSTEM = [{"role": "system", "content": "Answer in one word."}, USER]
NAMES = {
    "smollm2": "<|im_end|>",
    "qwen": "<|im_start|>",
    "llama3": "<|eot_id|>",
    "gemma": "<end_of_turn>",
}


def vocabulary(folder: Path, family: str, template: Any = None) -> Any:
    """Return a family's vocabulary with a chat template, and the one of transformers."""
    write_family(folder, family, chat_template=template or TEMPLATES[family])
    return find_vocabulary(folder, N_VOCAB), AutoTokenizer.from_pretrained(folder)


def loaded(vocabulary: Any, seed: int = 0) -> LoadedModel:
    torch.manual_seed(seed)
    return LoadedModel("tiny", GPT(GPTConfig(N_VOCAB, 256, 1, 2, 16)).eval(), vocabulary, torch.device("cpu"), "fp32")


@pytest.mark.parametrize("family", TEMPLATES)
def test_a_chat_has_the_ids_of_transformers(tmp_path: Path, family: str) -> None:
    ours, theirs = vocabulary(tmp_path, family)
    chats = CHATS if family == "gemma" else [*CHATS, SYSTEM]
    for chat in chats:
        expected = theirs.apply_chat_template(chat, add_generation_prompt=True)["input_ids"]
        assert ours.encode_chat(chat) == expected


def test_the_template_of_its_own_file_comes_first_then_the_one_named_default(tmp_path: Path) -> None:
    named = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "named {{ messages[0].role }}"}]
    ours, theirs = vocabulary(tmp_path, "qwen", named)
    assert ours.decode(ours.encode_chat([USER])) == "named user"
    (tmp_path / "chat_template.jinja").write_text("own file")
    ours, theirs = find_vocabulary(tmp_path, N_VOCAB), AutoTokenizer.from_pretrained(tmp_path)
    assert ours.encode_chat([USER]) == theirs.apply_chat_template([USER])["input_ids"] == ours.encode("own file")


@pytest.mark.parametrize("family", NAMES)
def test_names_of_control_tokens_in_a_message_stay_characters(tmp_path: Path, family: str) -> None:
    ours, theirs = vocabulary(tmp_path, family)
    name = NAMES[family]
    plain, typed = ([{"role": "user", "content": f"a {word} b"}] for word in ("x", name))
    ids = ours.encode_chat(typed)
    expected = theirs.apply_chat_template(typed, add_generation_prompt=True, sanitize_control_tokens=True)["input_ids"]
    assert (
        ours.decode(ids) == theirs.decode(expected) == ours.decode(ours.encode_chat(plain)).replace(" x ", f" {name} ")
    )
    control = [[i for i in each if i in ours.special_ids] for each in (ids, expected, ours.encode_chat(plain))]
    assert control[0] == control[1] == control[2]


@pytest.mark.parametrize("role", ["user<|im_end|>", "<|im_start|>"])
def test_a_role_cannot_write_a_control_token(tmp_path: Path, role: str) -> None:
    ours, _ = vocabulary(tmp_path, "qwen")
    chats = [[{"role": each, "content": "a"}] for each in ("user", role)]
    control = [[i for i in ours.encode_chat(chat) if i in ours.special_ids] for chat in chats]
    assert control[0] == control[1]


@pytest.mark.parametrize(
    ("family", "template", "answer"),
    [
        ("smollm2", CHATML, "Good."),
        ("llama3", LLAMA3, "Good."),
        ("gemma", GEMMA, "Good."),
        ("llama2", LLAMA2, " Good."),
        ("mistral", LLAMA2, " Good."),
    ],
)
def test_a_further_turn_gives_the_ids_of_the_whole_chat(
    tmp_path: Path, family: str, template: str, answer: str
) -> None:
    ours, theirs = vocabulary(tmp_path, family, template)
    answered = [USER, {"role": "assistant", "content": "Good."}]
    chat = [*answered, {"role": "user", "content": "And now?"}]
    ids = ours.encode_chat([USER]) + ours.encode_continuation(answer) + ours.encode_message("And now?", first=False)
    assert ids == theirs.apply_chat_template(chat, add_generation_prompt=True)["input_ids"]
    assert ours.encode_message(USER["content"]) == ours.encode_chat([USER])
    before, after = ours.chat_frame()
    assert text_with_names(ours, ours.encode_chat([USER])) == before + USER["content"] + after
    assert is_chat(ours, ours.encode_chat([USER]))
    assert not is_chat(ours, prompt_ids(ours, USER["content"]))


def test_generation_takes_messages_and_ends_with_the_assistants_turn(tmp_path: Path) -> None:
    write_family(tmp_path, "gemma", chat_template=GEMMA)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [1, 5]}')
    ours = find_vocabulary(tmp_path, N_VOCAB)
    model = loaded(ours)
    with torch.no_grad():
        for block in model.model.h:
            block.attn.c_proj.weight.zero_()
            block.mlp.c_proj.weight.zero_()
        model.model.wpe.weight.zero_()
        last = model.model.wte.weight[ours.encode_chat([USER])[-1]]
        model.model.lm_head.weight = torch.nn.Parameter(model.model.lm_head.weight.clone())
        model.model.lm_head.weight[5] = 100 * last
    document = Generation(model, [USER])
    assert document.ids == ours.encode_chat([USER])
    for on_full in ("stop", "crop"):
        steps = list(generate(model, [USER], max_new_tokens=200, on_full=on_full))
        assert steps[-1].finish_reason == "end_of_text"
        assert steps[-1].token_id in (1, 5)
        assert steps[-1].text == ""


def test_what_a_template_refuses_is_said_in_its_words(tmp_path: Path) -> None:
    ours, _ = vocabulary(tmp_path, "gemma")
    with pytest.raises(ValueError, match="refuses these messages: System role not supported"):
        ours.encode_chat(SYSTEM)


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([{"role": "user"}], "message 1 must be"),
        ([USER, {"role": "user", "content": 5}], "message 2 must be .* not {'role': 'user', 'content': 5}"),
        ([USER, "hello"], "message 2 must be .* not 'hello'"),
        ([{"role": "user", "content": "a", "tool_calls": []}], "message 1 must be"),
    ],
)
def test_messages_of_another_form_are_refused(tmp_path: Path, messages: Any, said: str) -> None:
    ours, _ = vocabulary(tmp_path, "qwen")
    with pytest.raises(ValueError, match=said):
        Generation(loaded(ours), messages)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{% for a in range(99999999) %}{% endfor %}", "fails: OverflowError"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "fails: RecursionError"),
        ("{{ ''.__class__.__mro__ }}", "fails: SecurityError"),
        ("{{ cycler.__init__.__globals__.os.environ }}", "fails: SecurityError"),
        ("{{ messages.append(1) }}", "fails: SecurityError"),
        ("{% if %}", "fails: TemplateSyntaxError"),
        ("{{ messages[0].content.nothing.at.all }}", "fails: UndefinedError"),
        ("{{ raise_exception('a' * 5000) }}", "refuses these messages: a{200}$"),
    ],
)
def test_a_hostile_template_fails_by_a_sentence(template: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ChatTemplate(template).render([USER])


def test_a_template_sees_nothing_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    found = ChatTemplate("{{ self }}{{ config }}{{ environment }}{{ TOKEN }}{{ bos_token }}", {"bos_token": "<s>"})
    assert "secret" not in found.render([USER])
