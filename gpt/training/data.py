"""What a GPT is trained on: texts, stories and small tasks, read or drawn, split, encoded and batched."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, islice, pairwise
from pathlib import Path
from string import ascii_lowercase

import numpy as np
import torch
from tokenizers import ByteLevelBPETokenizer
from torch import Tensor

from gpt.errors import GPTError, require
from gpt.model import GPT
from gpt.models.checkpoints.hugging_face_tokenizer import byte_letters
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.loading import LoadedModel
from gpt.tokenizer import END_OF_TEXT, Tokenizer, Vocabulary, bpe_tokenizer, valid_text
from gpt.training.evaluation import sample
from gpt.training.recipe import Recipe
from gpt.training.trainer import Batch

BYTES = bpe_tokenizer({bytes([n]): n for n in range(256)})  # for texts with too many different characters
MAX_TEXT_BYTES = 1_000_000
VALIDATION_ROWS = 32
MAX_EXAMPLE_TOKENS = 48
MAX_START_CHARS = 32
SAMPLE_TOKENS = 120
SHAKESPEARE = Path(__file__).parent.parent / "assets" / "shakespeare" / "input.txt.gz"
REPEAT_LENGTHS = (8, 120)  # tokens per repeated sequence
WITH_START = 0.8  # share of the repeated rows that start with end-of-text
STORY_PROMPTS = ("Once upon a time", "Tom and Lily", "The little dog said")
TEST_EVERY = 10  # one example of a task in TEST_EVERY is kept for testing
N_TEST_EXAMPLES = 500
N_SAMPLES = 4


@dataclass(frozen=True)
class Sample:
    """A prompt, a model's continuation, and the correct continuation, or None for a dataset without correct answers."""

    prompt: str
    text: str
    expected: str | None = None

    @property
    def correct(self) -> bool | None:
        """Whether every character is correct, or None if `expected` is None."""
        return None if self.expected is None else self.text == self.expected


def training_text(text: str) -> str:
    r"""Clean a text for training: remove the byte order mark, end lines with \n, and turn lone surrogates into U+FFFD.

    Many Windows editors write the mark U+FEFF at the start of a file. It is not part of the text, but it survives
    decoding as "utf-8" and pasting.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return valid_text(text)


def read_text(path: Path | str) -> str:
    """Read the `training_text` of a UTF-8 file. Raises ValueError if the file cannot be read or contains no text."""
    path = Path(path)
    require(path.is_file(), "training.no_file", path=path)
    try:
        text = training_text(path.read_bytes().decode())
    except UnicodeDecodeError as error:
        raise GPTError("training.file_not_utf8", file=path, byte=error.start) from None
    require(text.replace(END_OF_TEXT, "").strip(), "training.no_text", path=path)
    return text


def read_stories(path: Path | str) -> list[str]:
    """Read the stories in a UTF-8 file, which are separated by <|endoftext|>. Strips them and drops empty ones."""
    stories = (story.strip() for story in read_text(path).split(END_OF_TEXT))
    return [story for story in stories if story]


def shakespeare_text() -> str:
    """Return 40,000 lines of Shakespeare's plays (1,115,394 characters), the text of nanoGPT's character experiment."""
    return gzip.decompress(SHAKESPEARE.read_bytes()).decode()


def first_words(text: str) -> str:
    """Return the first non-empty line of a text, or its first three words if it exceeds MAX_START_CHARS."""
    line = text.strip().split("\n")[0]
    return line if len(line) <= MAX_START_CHARS else " ".join(line.split(" ")[:3])[:MAX_START_CHARS]


def split_stories(stories: list[str], held_back: float, seed: int) -> tuple[list[str], list[str]]:
    """Shuffle the stories and split them into (training, validation), with at least one story each.

    held_back: fraction of the stories for validation. A single story is split instead, holding back its end, at least
    one character.
    """
    if len(stories) == 1:
        cut = min(max(1, int(len(stories[0]) * (1 - held_back))), len(stories[0]) - 1)
        return [stories[0][:cut]], [stories[0][cut:]]
    order = np.random.default_rng(seed).permutation(len(stories))
    n = min(max(1, round(len(stories) * held_back)), len(stories) - 1)
    return [stories[i] for i in order[n:]], [stories[i] for i in order[:n]]


def fingerprint(stories: list[str]) -> str:
    return hashlib.sha256(END_OF_TEXT.join(stories).encode()).hexdigest()


def train_tokenizer(stories: list[str], vocab_size: int) -> Tokenizer:
    """Train byte-level BPE with GPT-2's word pattern: vocab_size - 1 tokens, followed by end-of-text.

    vocab_size: at least 257. The vocabulary is smaller if no pairs remain to be merged. Ties are broken by id, so the
    same text gives the same tokens. Source: Sennrich et al., arXiv 1508.07909.
    """
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(stories, vocab_size - 1, min_frequency=0, show_progress=False)
    byte_of = byte_letters()
    ranks = {bytes(byte_of[char] for char in token): rank for token, rank in bpe.get_vocab().items()}
    return bpe_tokenizer(ranks)


def character_vocabulary(stories: list[str], vocab_size: int) -> Characters:
    """Return a vocabulary of <unk>, the most frequent characters in descending order, and end-of-text."""
    found = Counter(character for story in stories for character in story).most_common(vocab_size - 2)
    return Characters(["<unk>", *(character for character, _ in found), END_OF_TEXT])


class TextDataset:
    """A text that is split into rows of one context.

    held_back: fraction at the end of the text to hold back for validation, at least one context. start: the first line,
    or its first words. vocabulary: BYTES, or the vocabulary of the model whose training continues; defaults to the
    characters of the text. Raises ValueError if the text is too short, repeats a single character, or has a character
    that the vocabulary lacks.

    validation: rows that are not used for training. example: ids of one of them, on which attention is recorded. query:
    the position in `example` that predicts the answer's first token. fingerprint: hash of the text. held_back: texts to
    score. prompts: beginnings of sample texts.
    """

    def __init__(
        self,
        text: str,
        *,
        block_size: int = 64,
        seed: int = 0,
        held_back: float = 0.1,
        name: str = "text",
        vocabulary: Vocabulary | None = None,
    ) -> None:
        text = training_text(text)
        self.name, self.seed, self.block_size = name, seed, block_size
        self.fingerprint = fingerprint(["characters", text])
        self.vocabulary = vocabulary or Characters(sorted(set(text)))
        ids = self.vocabulary.encode(text)
        n, least, units = len(ids), self.min_tokens(block_size), "bytes" if vocabulary is BYTES else "characters"
        require(n >= least, "training.text_too_short", n=n, units=units, block_size=block_size, least=least)
        require(len(set(ids)) >= 2, "training.one_character")
        self.start = first_words(text) if len(first_words(text).encode()) <= block_size // 2 else text[0]
        n_training = int(len(ids) * (1 - held_back))
        n_validation = min(max(len(ids) - n_training, block_size + 1), len(ids) - block_size - 1)
        tokens = torch.tensor(ids, dtype=torch.int32)
        self.training_ids, self.validation_ids = tokens[:-n_validation], tokens[-n_validation:]
        starts = np.linspace(0, n_validation - block_size - 1, VALIDATION_ROWS, dtype=int)
        self.validation = self._rows(self.validation_ids, starts)
        self.example = self.validation_ids[: min(block_size, MAX_EXAMPLE_TOKENS)].tolist()
        self.query = len(self.example) // 2
        self.held_back = [self.vocabulary.decode(self.validation_ids.tolist())]
        self.prompts = (self.start,)

    @staticmethod
    def min_tokens(block_size: int) -> int:
        return 4 * (block_size + 1)

    def batch(self, step: int, size: int) -> Batch:
        rng = np.random.default_rng([self.seed, step])
        return self._rows(self.training_ids, rng.integers(0, len(self.training_ids) - self.block_size, size))

    def batches(self, size: int, start: int = 0) -> Iterator[Batch]:
        return (self.batch(step, size) for step in count(start))

    def _rows(self, tokens: Tensor, starts: np.ndarray) -> Batch:
        return Batch.of_rows(tokens[torch.from_numpy(starts)[:, None] + torch.arange(self.block_size + 1)])

    def accuracy(self, model: GPT) -> None:
        """Return None, because a text has no correct continuation."""

    def samples(self, loaded: LoadedModel) -> tuple[Sample, ...]:
        return (Sample(self.start, sample(loaded, self.start, seed=self.seed, max_new_tokens=SAMPLE_TOKENS)),)


def encode_stories(stories: list[str], tokenizer: Vocabulary, block_size: int, part: str) -> list[np.ndarray]:
    """Return the int32 ids of each story, preceded by end-of-text. Raises ValueError if there are too few ids."""
    documents = [np.array([tokenizer.eot_id, *tokenizer.encode(story)], dtype=np.int32) for story in stories]
    n_tokens = sum(map(len, documents))
    require(n_tokens > block_size, "training.part_too_short", part=part, n=n_tokens, block_size=block_size)
    return documents


def epoch_rows(documents: Sequence[np.ndarray], recipe: Recipe, number: int) -> np.ndarray:
    """Return the training rows of one epoch, most of which start at the beginning of a story: (n, block_size + 1) ids.

    An epoch shuffles the stories, each preceded by end-of-text, and concatenates them. A row starts with a story
    and continues with the following stories. If its end truncates a story, the next row starts with that story. A story
    that is longer than a row continues in rows that start half a context apart, as in evaluation. A quarter of the rows
    omit the first end-of-text, and a tenth start inside a story, so that the model accepts prompts without end-of-text.
    The order of the rows is random and depends only on the recipe's seed. documents: see `encode_stories`.
    """
    rng, block_size = np.random.default_rng([recipe.seed, number]), recipe.block_size
    documents = [documents[i] for i in rng.permutation(len(documents))]
    stream, width = np.concatenate(documents), block_size + 1
    starts: list[int] = []
    for begin, end in pairwise([0, *np.cumsum([len(ids) for ids in documents]).tolist()]):
        if not starts or end > starts[-1] + width:  # truncated in the previous row
            starts.append(begin)
            while end > starts[-1] + width:
                starts.append(starts[-1] + block_size // 2)
    at = np.array(starts)
    kind = rng.random(len(at))
    at += kind < 0.25
    at += np.where(kind > 0.9, rng.integers(0, block_size // 2, len(at)), 0)
    at = np.minimum(at, len(stream) - width)
    return stream[rng.permutation(at)[:, None] + np.arange(width)]


def story_batches(documents: Sequence[np.ndarray], recipe: Recipe, size: int, start: int = 0) -> Iterator[np.ndarray]:
    """Yield batches (size, block_size + 1) of all epochs' rows, starting with batch number `start`."""
    epochs = (epoch_rows(documents, recipe, number) for number in count())
    rows = islice(chain.from_iterable(epochs), start * size, None)
    while True:
        yield np.stack([*islice(rows, size)])


class StoryDataset:
    """A file of stories, with a vocabulary trained on their training part.

    vocabulary: vocabulary to use; None trains a new one. Raises ValueError if the text cannot be read or is too short.

    fingerprint: hash of the text. held_back: texts to score. prompts: beginnings of sample texts.
    """

    def __init__(self, path: Path, recipe: Recipe, vocabulary: Vocabulary | None = None) -> None:
        stories = read_stories(path)
        self._recipe = recipe
        self.fingerprint = fingerprint(stories)
        training, self.held_back = split_stories(stories, recipe.held_back, recipe.seed)
        make = character_vocabulary if recipe.vocabulary == "characters" else train_tokenizer
        self.vocabulary = vocabulary or make(training, recipe.vocab_size)
        self._documents = encode_stories(training, self.vocabulary, recipe.block_size, "training")
        encode_stories(self.held_back, self.vocabulary, recipe.block_size, "held-back")  # raises if it is too short
        self.n_stories, self.n_bytes = len(stories), sum(len(story.encode()) for story in stories)
        of_poems = recipe.vocabulary == "characters"
        self.prompts = tuple(map(first_words, self.held_back[:3])) if of_poems else STORY_PROMPTS

    def batches(self, size: int, start: int = 0) -> Iterator[Batch]:
        for step, rows in enumerate(story_batches(self._documents, self._recipe, size, start), start):
            yield with_repeats(rows, self.vocabulary, self._recipe, step)


def with_repeats(rows: np.ndarray, tokenizer: Vocabulary, recipe: Recipe, step: int) -> Batch:
    """Replace the first few training rows (B, T + 1) of an update with repeated random sequences.

    On average, this replaces B x recipe.repeats(step) rows. In these rows, targets count only from the second token of
    the second copy, because earlier tokens cannot be predicted. In all rows, the model never learns to write <unk>.
    Source: the repeated random tokens in Olsson et al. (2022), arXiv 2209.11895.
    """
    idx, targets = (ids.clone() for ids in Batch.of_rows(rows))  # which share memory
    rng = np.random.default_rng([recipe.seed, step, 1])
    expected = len(rows) * recipe.repeats(step)
    for row in range(int(expected + rng.random())):
        length = int(rng.integers(REPEAT_LENGTHS[0], min(REPEAT_LENGTHS[1], (rows.shape[1] - 1) // 2) + 1))
        start = [tokenizer.eot_id] if tokenizer.eot_id is not None and rng.random() < WITH_START else []
        sequence = rng.integers(0, tokenizer.n_vocab - len(start), length)  # end-of-text has the last id
        ids = torch.from_numpy(np.concatenate([start, np.resize(sequence, rows.shape[1] - len(start))])).long()
        idx[row], targets[row] = ids[:-1], ids[1:]
        targets[row, : len(start) + length] = -100
    if tokenizer.unknown_id is not None:
        targets[targets == tokenizer.unknown_id] = -100
    return Batch(idx, targets)


@dataclass(frozen=True)
class Example:
    """A prompt and its answer, which ends with a line feed. key: shared by examples kept in the same split."""

    prompt: str
    answer: str
    key: str


@dataclass(frozen=True)
class Task:
    """A distribution over examples. draw: draws one example. width: maximum length, including the line feed."""

    name: str
    characters: str
    width: int
    draw: Callable[[np.random.Generator], Example]

    def examples(self, rng: np.random.Generator, *, test: bool) -> Iterator[Example]:
        """Yield random examples indefinitely: only those whose key is kept for testing, or only the others."""
        while True:
            example = self.draw(rng)
            if (zlib.crc32(example.key.encode()) % TEST_EVERY == 0) == test:
                yield example


class TaskDataset:
    """The examples of a task, with the same attributes as `TextDataset`. The seed determines all examples."""

    def __init__(self, task: Task, seed: int = 0) -> None:
        self.task, self.seed, self.name = task, seed, task.name
        self.vocabulary: Vocabulary = Characters(sorted({"\n", *task.characters}))
        self.block_size = task.width - 1
        examples = task.examples(np.random.default_rng([seed, 1]), test=True)
        self.test_examples = list(islice(examples, N_TEST_EXAMPLES))
        self.validation = self.encode(self.test_examples)
        first = self.test_examples[0]
        self.start, self.query = first.prompt, len(first.prompt) - 1
        self.example = self.vocabulary.encode(first.prompt + first.answer)[: self.block_size]

    def batch(self, step: int, size: int) -> Batch:
        examples = self.task.examples(np.random.default_rng([self.seed, 0, step]), test=False)
        return self.encode(list(islice(examples, size)))

    def encode(self, examples: Sequence[Example]) -> Batch:
        """Encode examples as rows of equal width, padded with line feeds. Only the answers are targets."""
        ids = torch.full((len(examples), self.task.width), self.vocabulary.encode("\n")[0])
        is_answer = torch.zeros_like(ids, dtype=torch.bool)
        for row, example in enumerate(examples):
            text = example.prompt + example.answer
            ids[row, : len(text)] = torch.tensor(self.vocabulary.encode(text))
            is_answer[row, len(example.prompt) : len(text)] = True
        return Batch(ids[:, :-1], torch.where(is_answer, ids, -100)[:, 1:])

    @torch.inference_mode()
    def accuracy(self, model: GPT) -> float:
        """Return the fraction of test examples that greedy decoding answers correctly: every target is most likely."""
        best = model(self.validation.idx).argmax(dim=-1)  # (B, T)
        right = (best == self.validation.targets) | (self.validation.targets == -100)
        return right.all(dim=1).double().mean().item()

    def samples(self, loaded: LoadedModel) -> tuple[Sample, ...]:
        def answer(example: Example) -> str:
            return sample(loaded, example.prompt, max_new_tokens=len(example.answer), temperature=0)

        return tuple(Sample(each.prompt, answer(each), each.answer) for each in self.test_examples[:N_SAMPLES])


Dataset = TextDataset | TaskDataset  # what a live run trains on


def draw_letters(solve: Callable[[str], Iterable[str]], rng: np.random.Generator) -> Example:
    """Return eight letters and the same letters in another order: "qbdazkce>abcdekqz"."""
    letters = "".join(ascii_lowercase[i] for i in rng.integers(len(ascii_lowercase), size=8))
    return Example(f"{letters}>", "".join(solve(letters)) + "\n", letters)


def draw_add(rng: np.random.Generator) -> Example:
    """Return a sum of two-digit numbers: "27+58=85"; "58+27=85" has the same key."""
    a, b = (int(number) for number in rng.integers(10, 100, size=2))
    return Example(f"{a}+{b}=", f"{a + b}\n", f"{min(a, b)}+{max(a, b)}")


def draw_copy(rng: np.random.Generator) -> Example:
    """Return letters, a gap, and one of the letters with the letters that followed it: "qbdazkce....zkce".

    An induction head solves this: it attends to the token after the previous occurrence of the current one (Olsson
    et al., arXiv 2209.11895). No letter occurs twice before the gap.
    """
    letters = "".join(ascii_lowercase[i] for i in rng.permutation(len(ascii_lowercase))[:8])
    at, gap = int(rng.integers(5)), int(rng.integers(1, 9))
    return Example(letters + "." * gap + letters[at], letters[at + 1 : at + 4] + "\n", letters)


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("sort", ascii_lowercase + ">", 18, partial(draw_letters, sorted)),
        Task("reverse", ascii_lowercase + ">", 18, partial(draw_letters, reversed)),
        Task("add", "0123456789+=", 10, draw_add),
        Task("copy", ascii_lowercase + ".", 21, draw_copy),
    )
}
