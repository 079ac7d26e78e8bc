"""The steps of the course, in order."""

from gpt.course.step import Step
from gpt.course.steps import (
    block,
    configuration,
    dot_products,
    embeddings,
    feed_forward,
    gelu,
    generation,
    heads,
    layer_norm,
    loss,
    mean_of_past,
    model,
    parameters,
    query_key_value,
    sampling,
    training,
    weights,
)

STEPS: dict[str, Step] = {
    module.STEP.key: module.STEP
    for module in (
        configuration,
        embeddings,
        layer_norm,
        gelu,
        feed_forward,
        mean_of_past,
        dot_products,
        query_key_value,
        heads,
        block,
        model,
        parameters,
        loss,
        generation,
        sampling,
        weights,
        training,
    )
}
