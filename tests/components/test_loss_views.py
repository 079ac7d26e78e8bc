from components.tabs.loss import views as loss_views
from gpt import get_model
from gpt.experiments.text_loss import score_text


def said(text: str) -> str:
    loaded = get_model()
    reading = loss_views.Reading(loaded, score_text(loaded, loaded.tokenizer.encode(text)), 1)
    return loss_views.says(reading, "en")


def test_an_unsure_model_chose_among_as_many_tokens_as_the_perplexity_says():
    assert "as unsure as in a fair choice among" in said("Once upon a time there was a little girl.")


def test_a_perplexity_above_the_vocabulary_is_no_choice_among_more_tokens_than_there_are():
    text = said("zq zq Ω≠∂ girl,,,!! 7a7 the the upon")
    assert "was sure of other tokens than these: a blind choice among all 4,096" in text
    assert "fair choice" not in text
