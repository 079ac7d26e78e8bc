"""Train a GPT on a text file.

    python -m gpt.training stories.txt --out runs/stories

The text is UTF-8; a line <|endoftext|> ends each story. The folder of --out gets the vocabulary, the best
weights so far (best/, with a model card at the end), a log with its curve, samples, and last.pt, from which a
run that was stopped or killed goes on:

    python -m gpt.training stories.txt --out runs/stories --resume

Under torchrun several processes share each batch, one per GPU:

    torchrun --nproc-per-node 4 -m gpt.training stories.txt --out runs/stories

The defaults made the bundled model, with --compile --every 200.
"""

from __future__ import annotations

import argparse
import importlib.util
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, fields
from pathlib import Path
from types import FrameType

from gpt.errors import GPTError
from gpt.models.loading import LoadedModel
from gpt.training.corpus import Rows, encode_stories, fingerprint, learn_tokenizer, read_stories, split_stories
from gpt.training.evaluation import sample
from gpt.training.model_card import CardText, write_card
from gpt.training.recipe import Recipe
from gpt.training.run_folder import LogRow, RunFolder
from gpt.training.trainer import Process, Trainer, joined

PACKAGES = ("tokenizers", "tqdm", "matplotlib")  # needed to train, not to run the app
PROMPTS, SAMPLE_TOKENS = ("Once upon a time", "Tom and Lily", "The little dog said"), 100
LINE_EVERY = 20  # steps between two lines of progress where there is no terminal


class Run:
    """One training in one folder, as one of its processes sees it.

    Raises ValueError for a text, folder or recipe that it cannot begin or go on with; then nothing is written.
    """

    def __init__(self, text: Path, out: Path, recipe: Recipe, *, resume: bool = False) -> None:
        self.recipe, self.folder = recipe, RunFolder(out)
        self.saved = self.folder.load() if resume else None
        if self.saved is None:
            self.folder.check_free()
        else:
            recipe.check_goes_on(Recipe(**self.saved["recipe"]), self.saved["step"])
        stories = read_stories(text)
        self.fingerprint = fingerprint(stories)
        if self.saved is not None and self.saved.get("text", self.fingerprint) != self.fingerprint:
            raise GPTError("training.other_text", text=text, folder=out)
        self.training, self.held_back = split_stories(stories, recipe.held_back, recipe.seed)
        self.tokenizer = self.folder.tokenizer() if resume else learn_tokenizer(self.training, recipe.vocab_size)
        self.rows = Rows(self.training, self.tokenizer, recipe.block_size, recipe.seed)
        encode_stories(self.held_back, self.tokenizer, recipe.block_size, "held-back")  # refuses too short a text

    def train(
        self, process: Process, *, every: int = 250, compiled: bool = False, stop: Callable[[], bool] = lambda: False
    ) -> bool:
        """Make the steps that are left; True at the end, False if `stop` asked for an earlier one.

        Evaluates, samples and saves after each `every` steps and the last one. Raises ValueError if the loss
        becomes infinite; what was saved before stays.
        """
        recipe = self.recipe
        trainer = Trainer(recipe, self.tokenizer.n_vocab, process, compiled=compiled)
        if self.saved is not None:
            trainer.load(self.saved)
        process.wait()  # nobody still looks whether the folder is empty
        if process.is_first and self.saved is None:
            self.folder.begin(self.tokenizer)
            self.save(trainer)
        batches = self.rows.batches(recipe.batch_size, start=trainer.step)
        with closing(Progress(trainer)) as progress:
            while trainer.step < recipe.steps and not process.sum(stop())[0]:
                trainer.update(next(batches))
                progress.show()
                if trainer.step % every == 0 or trainer.step == recipe.steps:
                    progress.say(self.evaluate(trainer))
        if trainer.step < recipe.steps:
            self.save(trainer)
        return trainer.step == recipe.steps

    def evaluate(self, trainer: Trainer) -> str:
        """Measure, keep, log and sample the weights of this moment; says in a line how good they are."""
        score = trainer.score(self.tokenizer, self.held_back)
        row = LogRow(
            step=trainer.step,
            tokens=trainer.n_tokens,
            train_loss=sum(trainer.losses) / len(trainer.losses),
            val_loss=score.loss,
            bits_per_byte=score.bits_per_byte,
            rate=self.recipe.rate(trainer.step - 1),
            seconds=trainer.seconds,
        )
        is_best = score.loss < trainer.best
        trainer.best, trainer.losses = min(score.loss, trainer.best), []
        self.save(trainer, row, is_best)
        return (
            f"step {row.step}: loss {row.train_loss:.4f}, held back {row.val_loss:.4f} nats a token, "
            f"{row.bits_per_byte:.4f} bits a byte{' (best)' if is_best else ''}"
        )

    def save(self, trainer: Trainer, row: LogRow | None = None, is_best: bool = False) -> None:
        """Write what to go on from; after an evaluation also its row, the best weights, samples and the curve."""
        state = {**trainer.state(), "recipe": asdict(self.recipe), "text": self.fingerprint}
        if not trainer.process.is_first:
            return
        if row is not None:
            self.folder.add_to_log(row)
            if is_best:
                self.folder.save_best(trainer.model)
        self.folder.save(state)
        if row is not None:
            loaded = LoadedModel("in training", trainer.model.eval(), self.tokenizer, trainer.process.device, "fp32")
            texts = [sample(loaded, prompt, seed=0, max_new_tokens=SAMPLE_TOKENS) for prompt in PROMPTS]
            self.folder.add_samples(row.step, texts)
            self.folder.draw_curve()


class Progress:
    """How far the training is: a bar on a terminal, else a line now and then; only the first process shows it."""

    def __init__(self, trainer: Trainer) -> None:
        from tqdm import tqdm

        self.trainer, self.begun, self.speaks = trainer, (trainer.n_tokens, trainer.seconds), trainer.process.is_first
        disable = None if self.speaks else True  # None: unless on a terminal
        self.bar = tqdm(total=trainer.recipe.steps, initial=trainer.step, unit="step", disable=disable)

    def show(self) -> None:
        """Show the step just made: the mean loss of the last few and the speed since the start."""
        trainer = self.trainer
        recent = trainer.losses[-LINE_EVERY:]
        loss = sum(recent) / len(recent)
        speed = (trainer.n_tokens - self.begun[0]) / (trainer.seconds - self.begun[1])
        if not self.bar.disable:
            self.bar.set_postfix_str(f"loss {loss:.4f}, {speed:,.0f} tokens/s", refresh=False)
            self.bar.update()
        elif trainer.step % LINE_EVERY == 0:
            self.say(f"step {trainer.step}/{trainer.recipe.steps} loss {loss:.4f}, {speed:,.0f} tokens/s")

    def say(self, line: str) -> None:
        """Print a line, above the bar if there is one."""
        if self.speaks:
            self.bar.write(line)
            sys.stdout.flush()

    def close(self) -> None:
        """Leave the bar as it is."""
        self.bar.close()


class StopSignal:
    """Turns Ctrl-C and SIGTERM into a stop after the step at hand; a second one of the same kind acts at once."""

    def __init__(self) -> None:
        self.number = 0

    def __enter__(self) -> StopSignal:
        self._before = {number: signal.signal(number, self._receive) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        """True once a signal came."""
        return self.number != 0

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        signal.signal(number, signal.SIG_DFL)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code: 0, 1 after an error said in a sentence, 128 + signal after a stop."""
    options = make_parser().parse_args(arguments)
    try:
        for package in PACKAGES:
            if importlib.util.find_spec(package) is None:
                raise GPTError("training.package", package=package)
        recipe = Recipe(**{f.name: getattr(options, f.name) for f in fields(Recipe)})
        with StopSignal() as stop, joined(recipe.precision) as process:
            run = Run(options.text, options.out, recipe, resume=options.resume or options.card)
            if not options.card and not run.train(process, every=options.every, compiled=options.compile, stop=stop):
                if process.is_first:
                    print(f"stopped; the same command with --resume goes on from {options.out}", file=sys.stderr)
                return 128 + (stop.number or signal.SIGTERM)
        if process.is_first:
            text = CardText(options.data, options.hardware, options.dataset, options.license)
            command = written_command(options, process.world)
            score = write_card(run.folder, recipe, command, run.training, run.held_back, text)
            print(f"{run.folder.best}: {score.bits_per_byte:.4f} bits a byte on {len(run.held_back)} held-back stories")
    except OSError as error:
        return failed(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
    except ValueError as error:
        return failed(str(error))
    return 0


def failed(sentence: str) -> int:
    """Say why on the standard error stream; returns the exit code."""
    print(f"gpt.training: {sentence}", file=sys.stderr)
    return 1


def make_parser() -> argparse.ArgumentParser:
    """The options; those of the recipe come from its fields."""

    def count(word: str) -> int:
        if int(word) < 1:
            raise ValueError
        return int(word)

    about, _, usage = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m gpt.training",
        description=about,
        epilog=usage,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("text", type=Path, help="the stories")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run: new, empty, or to go on with")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out where it stopped")
    parser.add_argument("--compile", action="store_true", help="torch.compile: a slow start, then faster steps")
    parser.add_argument("--every", type=count, default=250, metavar="N", help="evaluate and save every N steps (250)")
    card = parser.add_argument_group("model card")
    card.add_argument("--card", action="store_true", help="train nothing: write the card of the run in --out again")
    card.add_argument("--data", default=CardText.data, help="what the text is, where from, its licence; Markdown")
    card.add_argument("--hardware", default=CardText.hardware, help="what it was trained on")
    card.add_argument("--dataset", help="the text's id on the Hugging Face hub")
    card.add_argument("--license", default=CardText.license, help="licence of the weights, as the hub spells it")
    recipe = parser.add_argument_group("recipe")
    for f in fields(Recipe):
        help, choices = f"{f.metadata['help']} ({f.default})", f.metadata["choices"] or None
        metavar = None if choices else "X" if isinstance(f.default, float) else "N"
        recipe.add_argument(
            option_name(f.name), type=type(f.default), default=f.default, choices=choices, metavar=metavar, help=help
        )
    return parser


def option_name(field: str) -> str:
    """n_layer -> --n-layer."""
    return "--" + field.replace("_", "-")


def written_command(options: argparse.Namespace, world: int) -> str:
    """The command that makes the run from nothing: what differs from the defaults, without folders of this machine."""
    words = ["python"] if world == 1 else ["torchrun", "--nproc-per-node", str(world)]
    words += ["-m", "gpt.training", options.text.name, "--out", options.out.resolve().name]
    if options.compile:
        words.append("--compile")
    defaults = make_parser().parse_args([options.text.name, "--out", "out"])
    for name in ("every", *(f.name for f in fields(Recipe))):
        value = getattr(options, name)
        if value != getattr(defaults, name):
            words += [option_name(name), str(value)]
    return shlex.join(words)
