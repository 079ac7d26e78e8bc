import torch
from components.tabs.playground.panels import EXAMPLES

from components.state.session import Session
from gpt import GPT, Generation, GPTConfig, LoadedModel, get_model
from gpt.models.checkpoints.vocabularies import Characters
from tests.components.test_undo import UI


def session_of(loaded: LoadedModel, prompt: str) -> Session:
    return Session(Generation(loaded, prompt), prompt)


def test_an_example_is_taken_as_far_as_the_model_on_the_screen_can_spell_it():
    config = GPTConfig(vocab_size=3, block_size=8, n_layer=1, n_head=1, n_embd=8)
    own = LoadedModel("own", GPT(config).eval(), Characters(["a", "b", " "]), torch.device("cpu"), "fp32")
    text = next(iter(EXAMPLES.values()))
    values = {"session": session_of(own, "ab"), "frame.model": "own"}
    filled = starting.fill(UI, text, values)["prompt"]
    assert own.tokenizer.encode(filled)
    values = {"session": session_of(get_model(), "The"), "frame.model": "stories"}
    assert starting.fill(UI, text, values) == {"prompt": text}
