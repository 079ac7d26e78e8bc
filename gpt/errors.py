"""The errors of this package: each has a key, the values of its placeholders, and an English sentence made of them."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from string import Formatter


class GPTError(ValueError):
    """An error with a message key. `key` is one of MESSAGES, `values` fill its placeholders, `str` is in English.

    Values that are not numbers, strings, None or errors are stored as strings, so that every error can be pickled.
    Raises KeyError for an unknown key and TypeError for missing or additional values.
    """

    def __init__(self, key: str, /, **values: object) -> None:
        template = self.template(key)
        expected = {name for _, name, _, _ in Formatter().parse(template) if name}
        if values.keys() != expected:
            raise TypeError(f"{key} needs the values {sorted(expected)}, not {sorted(values)}")
        self.key = key
        self.values = {name: _picklable(value) for name, value in values.items()}
        super().__init__(template.format(**self.values))

    @staticmethod
    def template(key: str) -> str:
        """The English sentence of a key, with placeholders."""
        return MESSAGES[key]

    def __reduce__(self) -> tuple[Callable[..., GPTError], tuple[object, ...]]:
        return _restore, (type(self), self.key, self.values)


class Verbatim(str):
    """A string whose repr has no quotes."""

    def __repr__(self) -> str:
        return str(self)


def _picklable(value: object) -> object:
    if value is None or isinstance(value, (str, Number, GPTError)):
        return value
    return Verbatim(value.__name__ if isinstance(value, type) else value)


def _restore(kind: type[GPTError], key: str, values: dict[str, object]) -> GPTError:
    return kind(key, **values)


MESSAGES = {
    "argument.choice": "{name} must be one of {choices}, not {value!r}",
    "argument.minimum": "{name} must be at least {low}, not {value!r}",
    "argument.range": "{name} must be between {low} and {high}, not {value!r}",
    "argument.below_one": "{name} must be at least 0 and below 1, not {value!r}",
    "argument.above": "{name} must be a number above {low}, not {value!r}",
    "argument.whole_number_min": "{name} must be a whole number of at least {low}, not {value!r}",
    "argument.whole_number_range": "{name} must be a whole number between {low} and {high}, not {value!r}",
    "argument.number_min": "{name} must be a number of at least {low}, not {value!r}",
    "argument.number_range": "{name} must be a number between {low} and {high}, not {value!r}",
    "document.dropped": "the first tokens of this text have left the context: save the document as a file instead",
    "context.full": "the context of {limit} tokens is full",
    "context.prompt_too_long": "the prompt has {n} tokens, {excess} more than the context of {limit}",
    "context.no_room": "{n} tokens do not fit: the context of {limit} has room for {room}",
    "context.shape": "idx must have shape (batch, tokens), not {shape}: one text is idx[None]",
    "context.length": "{n} tokens do not fit a context of 1 to {limit}",
    "token.unknown": "token id {token} does not exist: the vocabulary has ids 0 to {last}",
    "position.unknown": "position {position} does not exist: the text has positions 0 to {last}",
    "position.not_read": "position {position} has not been read: only {n} have",
    "position.not_traced": "position {position} was not traced: the trace has positions 0 to {last}",
    "position.patched": "position {position} was patched: its logits are not the sum of what the parts add",
    "layer.unknown": "layer {layer} does not exist: the model has layers 0 to {last}",
    "head.unknown": "head {head} does not exist: a layer has heads 0 to {last}",
    "prompt.not_a_list": "prompts must be a list of texts or of token ids, not one text",
    "prompt.type": "a prompt must be text, or token ids, which are whole numbers",
    "prompt.empty": "this vocabulary has no end-of-text token to start from: the prompt must not be empty",
    "generation.first_position": "start must be at least 1, not {start}: the first token has no probability",
    "config.head_width": "n_embd ({n_embd}) must be divisible by n_head ({n_head}): all heads have the same width",
    "config.rotary_head_width": "rotary positions rotate pairs of numbers: a head width of {width} is odd",
    "attention_mask.shape": "attention_mask must have shape {expected}, not {shape}",
    "cache.full": "{n} positions do not fit a cache of {limit}",
    "cache.no_queries": "this cache keeps no queries: make it with keep_queries=True",
    "trace.not_a_trace": "this file is not a trace written by Trace.save",
    "trace.not_recorded": "{name} was not recorded: model(idx, trace=Trace()) records it",
    "trace.incomplete": "this file does not hold the trace of a whole pass: final_norm is missing",
    "sampling.params": "params must be SamplingParams(...), not {type}",
    "sampling.top_p": "top_p must be a number above 0 and at most 1, not {value!r}",
    "sampling.penalty_overflow": "repetition_penalty {value!r} takes these logits beyond the range of a float",
    "sampling.logits_shape": "logits must be one row, a number per token, not of shape {shape}",
    "sampling.logits_not_finite": "logits must be finite or -inf: these contain +inf or NaN, or only -inf",
    "sampling.previous_ids": "previous_ids must be token ids, whole numbers",
    "edits.drop_positions": "drop_positions must be True or False, not {value!r}",
    "edits.head": "a head is named by its layer and its number, not {value!r}",
    "edits.layer": "a layer is named by its number, not {value!r}",
    "edits.factor": "a part can be multiplied by a finite number, not {value!r}",
    "patch.not_a_tensor": "what is patched in must be a tensor, not {type}",
    "patch.part": "only {choices} can be patched, not {name!r}",
    "patch.position": "position {position} cannot be patched: the context has positions 0 to {last}",
    "patch.shape": "a patch of shape {shape} does not fit: each text needs {n} numbers",
    "patch.batch_size": "a patch for {n} texts does not fit a batch of {batch_size}",
    "patch.text_length": "a patch comes from a text of 1 to {limit} tokens, not {n}",
    "patch.lengths_differ": "both texts must have the same number of tokens, not {clean} and {corrupted}",
    "patch.no_difference": "both texts give the logit difference {difference:.3f}: there is nothing to recover",
    "analysis.one_text": "an analysis is of one text: this trace holds {n}",
    "analysis.no_repeat": "the last token occurs nowhere before: there is nothing to copy",
    "analysis.state_shapes": "states of shape {shape} cannot be compared with {other}",
    "analysis.rollout_trace": "rollout needs a trace of the whole text: this one holds {traced} of {total} positions",
    "analysis.ids_trace": "{n} ids need a trace of the whole text: this one holds {traced} of {total} positions",
    "analysis.chosen_tokens": "{n} positions need as many chosen tokens, not {given}",
    "analysis.no_position_embeddings": "this model has no position embeddings to compare: its positions are rotary",
    "analysis.leave_one_out": "leaving a token out needs a text of at least 2 tokens, not {n}",
    "document.token_unknown": "there is no token number {number}: the document has 0 to {last}",
    "document.too_large": "a document holds at most {limit:,} tokens in all its branches: start a new one",
    "document.first_token_parent": "the first token has none before it, but is marked as following {parent}",
    "document.token_parent": "token number {number} must follow one of 0 to {last}, not {parent}",
    "document.token_params": "a sampled token has settings with a seed, and no other token has",
    "document.nothing_to_undo": "there is nothing to undo",
    "document.nothing_to_redo": "there is nothing to redo",
    "beam.none_finished": "no beam is finished yet",
    "beam.search_finished": "the search has finished",
    "edit_text.too_long": "a text of edits has at most {limit:,} characters, not {n:,}",
    "edit_text.unknown": "{part!r} is not an edit, or appears twice",
    "edit_text.duplicate": "{part!r} appears twice",
    "edit_text.factor": "{part!r} has a factor beyond {limit:g}",
    "edit_text.too_many_patches": "{part!r} is one of more than {limit} patches",
    "edit_text.activation": "{part!r} is not one of {choices}",
    "edit_text.patch_without_text": "a patch that does not come from a text cannot be written as a short text",
    "edit_text.number": "a factor of {factor} cannot be written: it may be between -{limit:g} and {limit:g}",
    "document_file.not_json": "the file is not JSON, the format of a saved document",
    "document_file.format": 'the file is not a document of this program: it does not say "format": "{format}"',
    "document_file.version": "the file has version {version!r}: this program reads version {known}",
    "document_file.too_long": "the file has {n:,} characters: a document has at most {limit:,}",
    "document_file.no_list": 'the file has no list "{name}"',
    "document_file.prompt_length": "the prompt in the file has {n:,} tokens, more than the context of {limit:,}",
    "document_file.text_length": "the text in the file has {n:,} tokens, more than the context of {limit:,}",
    "document_file.vocabulary": "the file is for a vocabulary of {n:,} tokens: that of {model} has {n_vocab:,}",
    "document_file.model": "the model must be a name in quotes, not {value!r}",
    "document_file.edits": "the edits must be a text in quotes, not {value!r}",
    "document_file.length": "a document holds 1 to {limit:,} tokens, not {n:,}",
    "document_file.token": "a token must be an object with id, after and how, not {value!r}",
    "document_file.how": "a token is typed, sampled or chosen, not {value!r}",
    "document_file.no_settings": "a token is marked as sampled, but the file has no settings",
    "document_file.after": '"after" must be the number of a token, not {value!r}',
    "document_file.settings": "settings are an object of {names}, not {value!r}",
    "document_file.no_seed": "settings need a seed, and these have none: {value!r}",
    "document_file.first_token": "the first token must be typed",
    "document_file.prompt": "the first {n} tokens are the prompt: each must be typed and follow the one before",
    "memory.checkpoint": "this model needs {need} of memory, {free} are free",
    "memory.limit": "{model} needs {need} of memory, and models may take {limit}: choose a smaller one, or allow more",
    "memory.in_use": "{model} needs {need} of memory, but other models are in use: try again later",
    "memory.device": "{model} does not fit in the memory of {device}: choose a smaller model",
    "memory.file": "{file} needs {need} of memory, more than this computer has",
    "memory.shape_limit": "this shape needs {need} of memory: the limit is {limit}",
    "memory.shape_in_use": "this shape needs {need} of memory, which others are using: try again later",
    "model.unknown": "there is no model {name!r}: known models are {models}",
    "model.unknown_source": "there is no model, file or folder {name!r}: known models are {models}",
    "model.packed_train": "packed weights cannot be trained: load the model with load_model(..., trainable=True)",
    "model.read_only": (
        "the weights of this model are packed for inference and cannot be changed: load it with "
        "load_model(..., trainable=True), or change one pass with Edits"
    ),
    "precision.int8_trainable": "int8 weights cannot be trained: choose fp32 or bf16",
    "model.not_loaded": "give a model as a name, a path, or the result of load_model or get_model, not as {type}",
    "model.not_shared": "{name} is not a shared model",
    "hub.unknown": "there is no public model {name!r} on the Hugging Face hub",
    "hub.format": "{name} has no {file} on the hub: other formats are not fetched",
    "hub.no_network": "no network",
    "hub.unreachable": (
        "{name} could not be fetched from the Hugging Face hub ({reason}): connect to the internet and choose it "
        "again; the download continues where it stopped. The bundled model needs no network"
    ),
    "device.unknown": "this computer has no device {device!r} that torch can use: choose cpu",
    "precision.int8_cpu": "precision int8 needs an x86 CPU: choose fp32 or bf16",
    "precision.int8_device": "precision int8 is for CPUs: on {device} choose bf16",
    "precision.onednn": "precision {precision} needs oneDNN, which this build of torch does not have: choose fp32",
    "file.unknown": "there is no file or folder {path}",
    "file.duplicate": "two of the files are named {file}",
    "file.unreadable": "{file} cannot be read: {reason}",
    "file.damaged": "{file} is damaged: {reason}",
    "file.cut_short": "{file} is damaged or cut short: {reason}",
    "file.json_type": "{file} is damaged: it should contain a {expected}, not a {type}",
    "file.too_large": "{file} has more than {limit:,} bytes: too many for a file of this kind",
    "checkpoint.logits_not_finite": "{model} gives logits that are NaN or infinite: its training went wrong",
    "checkpoint.weights_not_finite": "{name} has weights that are NaN or infinite: its training went wrong",
    "checkpoint.no_weights": "no weights here: their file ends in .safetensors, .pt, .pth or .bin; unpack a .zip first",
    "checkpoint.several_weights": "there are {n} files of weights here: name the one to read",
    "checkpoint.missing_shards": "{folder} has {n} parts of a model, but not all: see {file}",
    "checkpoint.checksum": "{folder} is damaged: its files do not match the checksum in {file}",
    "checkpoint.entries": "{file} is damaged: its entries are larger than its {size:,} bytes",
    "checkpoint.memo": "{file} is damaged: it numbers its values beyond its size",
    "checkpoint.tuples": "{file} has more than {limit:,} tuples, which no file of this kind has",
    "checkpoint.header_size": "{file} has a header of {n:,} bytes, and at most {limit:,} are read",
    "checkpoint.pickle_size": "{file} has {n:,} bytes beside its tensors: too many",
    "checkpoint.no_state_dict": "{file} contains no state dict: save model.state_dict()",
    "checkpoint.compressed": "{file} is compressed or encrypted, which torch.save never does: unpack it first",
    "checkpoint.old_format": "{file} has torch's format from before 2020: save it again with a newer torch",
    "checkpoint.unknown_format": "{file} is neither a safetensors file nor one that torch.save wrote, or it is damaged",
    "checkpoint.other_zip": "{file} is not a checkpoint but a zip file of another kind: save model.state_dict()",
    "checkpoint.code": "{file} would run code ({code}) and was not opened",
    "checkpoint.code_in_weights": "{file} would run code ({code}) and was not opened: save only model.state_dict()",
    "checkpoint.tensor_size": "{file}: {name} claims {n:,} numbers, more than the file has",
    "layout.heads_unknown": (
        "this checkpoint does not state its number of heads: give n_head, a divisor of {n_embd}, and activation if it "
        "is not {activation}"
    ),
    "layout.model_type": "this is a {model_type} model: only GPT-2 and models shaped like it can be shown",
    "layout.unknown": (
        "no known layout has weights named {names}: known are {known} and our own. Their roles cannot be inferred "
        'either ({reason}). Write them in a file names.json beside the weights, in place of each "?":\n{draft}'
    ),
    "layout.inferred": (
        "no known layout has weights with these names. Names and shapes suggest these roles, for a model of width "
        "{n_embd} with LayerNorm before attention and before feed-forward:\n{layout}\nIf that is right, say so with "
        "names='infer' (--names infer in a command); else save it, correct it, and give that file as names"
    ),
    "layout.no_role": "nothing looks like {role}",
    "layout.unclear": "{role} could be any of {names}",
    "layout.norms": "a block needs 2 norms of the model's width, not {n}: {names}",
    "layout.feed_forward": "a block needs 2 matrices beside attention, not {n}: {names}",
    "layout.blocks_differ": "block {block} differs from the first in {names}",
    "layout.left_over": "a GPT-2 has no place for {names}",
    "layout.file": "{file} is not a table of names: {reason}",
    "layout.duplicate": "two weights are named {name}",
    "layout.missing": "the weights do not fit; missing: {names}",
    "layout.not_a_matrix": "the weights do not fit: {name} is missing or not a matrix",
    "layout.misfits": "the weights do not fit; {problems}",
    "layout.contradiction": "{name} is {stated!r} in the configuration, but {found!r} in the weights",
    "layout.option": "{where} has an option that is not implemented: {names}",
    "layout.option_value": "{option}={value!r} changes the mathematics: only {implemented!r} is implemented",
    "layout.activation": "activation_function={value!r} is not implemented: known are {choices}",
    "layout.stated": "{name} is {stated} in the checkpoint, not {given}",
    "layout.head_bias": "transformers' GPT-2 has no bias in its head, which this model has",
    "layout.positions": "transformers' GPT-2 has learned positions only, not {position}",
    "vocabulary.not_gpt2": (
        "{file} is not a byte-level BPE like GPT-2's, the only kind read here: leave it out to write token ids "
        "instead of text"
    ),
    "vocabulary.merges": "the tokens of {words} and the merges of {merges} do not belong together: {reason}",
    "vocabulary.not_a_merge": "token {token} cannot be written as a merge of two others",
    "vocabulary.ids": "{file} is not a vocabulary: it must give each token an id",
    "vocabulary.parts": "{file} is not a vocabulary: it must contain tokens and merges",
    "vocabulary.invalid": "{file} is not a vocabulary: {reason}",
    "vocabulary.order": "{merges} is not in the order of the ids of {words}: tiktoken would encode differently",
    "vocabulary.size": "the vocabulary has {n:,} tokens, but the model has {n_vocab:,}: they do not belong together",
    "vocabulary.characters": "a vocabulary of characters lists single characters, each once",
    "vocabulary.nanogpt": "{file} is not a nanoGPT vocabulary of characters: {reason}",
    "vocabulary.added_tokens": (
        "{file} adds {token!r} to its merges, which is not supported: leave it out to write token ids instead of text"
    ),
    "vocabulary.missing_byte_ids": "{file} has no token for byte {byte}: leave it out to write token ids instead",
    "vocabulary.missing_byte": "{file} cannot spell every text: it has no token for byte {byte}",
    "vocabulary.tiktoken_ids": "{file} is not a tiktoken vocabulary: its ids are not 0 to {last}, each once",
    "vocabulary.tiktoken": "{file} is not a tiktoken vocabulary: {reason}",
    "vocabulary.unknown_character": "this model does not know “{character}”: it was trained on {n} characters: {known}",
    "vocabulary.none": "this model has no vocabulary: write token ids, 0 to {last}, separated by spaces, not {word!r}",
    "training.rates_too_high": "the loss or the weights became infinite at step {step}: try lower rates than {rates}",
    "training.empty_text": "the text is empty: there is nothing to learn from",
    "training.text_too_short": "the text has {n:,} {units}: with a context of {block_size} it needs {least:,}",
    "training.one_character": "the text repeats one character: there is nothing to predict",
    "training.file_too_large": "{file} has {n:,} bytes: at most {limit:,} can be learned from",
    "training.file_not_utf8": "{file} is not UTF-8 text: byte {byte} is not part of a character",
    "training.file_binary": "{file} is not text: it contains a zero byte",
    "training.queue_full_of_owner": "{n} trainings from one address wait already, which is the limit: try again later",
    "training.queue_full": "{n} trainings are waiting already, which is the limit: try again later",
    "training.rate_factor": "the learning rate can be multiplied by 0 to 100, not {factor:g}",
    "training.not_finished": "this training is {state}: there is a model when it has finished",
    "training.too_large_to_watch": "{name} must be at most {limit} for a training to be watched, not {value}",
    "training.other_text": "{text} is not the text that the run in {folder} was started with",
    "training.other_recipe": "this run was started with {name} {old}, not {new}",
    "training.steps_fixed": "steps {new} instead of {old} would have changed learning rates of the {step} updates made",
    "training.other_shape": "no recipe makes a model with {name} {value}, so that none can continue its training",
    "training.package": "training needs the package {package}: pip install {package}",
    "training.no_file": "there is no file {path}",
    "training.no_text": "{path} contains no text",
    "training.vocabulary_size": "vocab_size must be at least 257 (256 bytes and end-of-text), not {n}",
    "training.part_too_short": "the {part} text has {n} tokens: fewer than one context of {block_size} plus one",
    "training.no_weights": "{folder} has no weights yet to write a model card about",
    "training.no_snapshots": "{folder} has no snapshots: a training with --snapshots writes them",
    "training.out_is_file": "{path} is a file: --out needs a folder",
    "training.out_not_empty": "{path} is not empty: continue its run (--resume) or choose another folder",
    "training.nothing_to_resume": "{path} has no run to continue: there is no {file}",
    "training.other_checkpoint": "{path} is a checkpoint, but not of a run of this program",
    "training.damaged_checkpoint": "{path} cannot be read: it is damaged, or not a checkpoint",
    "training.too_many_processes": "there are more processes than GPUs: this machine has {n}",
    "training.batch_size": "batch_size ({batch_size}) must be divisible by the number of processes ({n})",
    "experiment.eps": "eps must be above 0, not {eps:g}: a row of equal numbers would be divided by zero",
    "experiment.rows": "rows must have shape (n, C) with C of at least 2, not {shape}",
    "experiment.slope": "the slope of {name} does not change its sign between {low:g} and {high:g}",
    "experiment.lengths": "trained_length must be above 8 and below tested_length, not {trained} and {tested}",
    "experiment.vocabulary_not_bytes": "a vocabulary of {n:,} tokens not made of bytes cannot be cut to {size:,}",
    "experiment.vocabulary_size": "a vocabulary of bytes needs at least 257 tokens to spell every text, not {size}",
    "experiment.nothing_to_count": "the text is empty: there is nothing to count",
    "experiment.nothing_to_measure": "the text is empty: there is nothing to measure",
    "experiment.several_words": "{text!r} is cut into {n} words before any merge: give one of them",
    "experiment.loss_too_short": "a loss needs at least two tokens, not {n}: the first has nothing before it",
    "experiment.no_results": "there is no file {file}: python -m gpt.experiments.scaling writes it",
    "experiment.other_recipe": "{path} is of a run with another recipe: delete it to start again",
}
