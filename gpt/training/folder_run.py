"""A training run on a text file that writes to a folder and shows its progress on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

from tqdm import tqdm

from gpt.errors import GPTError
from gpt.models.loading import LoadedModel
from gpt.training.evaluation import sample
from gpt.training.process import Process
from gpt.training.recipe import Recipe
from gpt.training.run_corpus import CharacterCorpus, RunCorpus, StoryCorpus
from gpt.training.run_folder import LogRow, RunFolder
from gpt.training.snapshots import snapshot_steps
from gpt.training.trainer import Trainer

SAMPLE_TOKENS = 100
LINE_STEPS = 20  # between two lines of progress where there is no terminal; the loss shown is their mean


class FolderRun:
    """One process of a training run in one folder.

    text: a file of stories; with `characters`, any text, a token for each character, or None for Shakespeare's.
    begin_with: the model whose weights and vocabulary the run begins with; None: random weights. Stories need a
        vocabulary with an end-of-text token, a run on characters one without.
    Raises ValueError for an invalid text, folder, recipe or vocabulary; then nothing is written.
    """

    def __init__(
        self,
        text: Path | None,
        out: Path,
        recipe: Recipe,
        *,
        characters: bool = False,
        begin_with: LoadedModel | None = None,
        resume: bool = False,
    ) -> None:
        self.recipe, self.folder, self.begin_with = recipe, RunFolder(out), begin_with
        self.saved = self.folder.load() if resume else None
        if self.saved is None:
            self.folder.check_free()
        else:
            recipe.check_continues(Recipe(**self.saved["recipe"]), self.saved["step"])
        self.corpus: RunCorpus
        tokenizer = None if begin_with is None else begin_with.tokenizer
        if characters or text is None:
            if tokenizer is not None and tokenizer.eot_id is not None:
                raise GPTError(
                    "training.begun_with_stories",
                    "the model to begin with has a vocabulary for stories: name the file without --characters",
                )
            self.corpus = CharacterCorpus(text, recipe, tokenizer)
        else:
            if tokenizer is not None and tokenizer.eot_id is None:
                raise GPTError(
                    "training.begun_with_characters",
                    "the vocabulary of the model to begin with has no end-of-text token to separate stories: train it "
                    "on one text with --characters FILE",
                )
            self.corpus = StoryCorpus(text, recipe, tokenizer or self.folder.tokenizer())
        fingerprint = self.corpus.fingerprint
        if self.saved is not None and self.saved.get("text", fingerprint) != fingerprint:
            raise GPTError(
                "training.other_text",
                "{text} is not the text that the run in {folder} was started with",
                text=text or "Shakespeare",
                folder=out,
            )

    def train(
        self,
        process: Process,
        *,
        every: int = 250,
        snapshots: int = 0,
        compiled: bool = False,
        stop: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Make the remaining updates; returns True after the last one, False if `stop()` was True before.

        Evaluates, samples and saves after each `every` updates and the last one. snapshots: number of small copies of
        the weights, on a log scale of steps. Raises ValueError if the loss becomes infinite; the last save stays.
        """
        recipe = self.recipe
        model = recipe.new_model(self.corpus.tokenizer.n_vocab)
        if self.begin_with is not None:
            model.load_state_dict(self.begin_with.model.state_dict())
        trainer = Trainer(model, recipe, process, compiled=compiled)
        if self.saved is not None:
            trainer.load(self.saved)
        process.barrier()  # until every process has checked the folder
        if process.is_first and self.saved is None:
            self.folder.begin(self.corpus.tokenizer)
            self.save(trainer)
        steps = snapshot_steps(recipe.steps, snapshots) if process.is_first else ()
        if trainer.step in steps:
            self.folder.save_snapshot(trainer.step, model, self.corpus.tokenizer)
        batches = self.corpus.batches(recipe.batch_size, start=trainer.step)
        with closing(ProgressBar(trainer)) as progress:
            while trainer.step < recipe.steps and not process.all_reduce(stop())[0]:
                trainer.update(next(batches))
                progress.show()
                if trainer.step in steps:
                    self.folder.save_snapshot(trainer.step, model, self.corpus.tokenizer)
                if trainer.step % every == 0 or trainer.step == recipe.steps:
                    progress.print(self.evaluate(trainer))
        if trainer.step < recipe.steps:
            self.save(trainer)
        return trainer.step == recipe.steps

    def evaluate(self, trainer: Trainer) -> str:
        """Score, log, save and sample the current weights; returns a line with the losses."""
        score = trainer.score(self.corpus.tokenizer, self.corpus.held_back)
        row = LogRow(
            step=trainer.step,
            tokens=trainer.n_tokens,
            train_loss=fmean(trainer.losses),
            val_loss=score.loss,
            bits_per_byte=score.bits_per_byte,
            rate=self.recipe.lr_factor(trainer.step - 1),
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
        """Write the state to resume from; after an evaluation also its row, the best weights, samples and the curve."""
        state = {**trainer.state(), "recipe": asdict(self.recipe), "text": self.corpus.fingerprint}
        if not trainer.process.is_first:
            return
        if row is not None:
            self.folder.add_to_log(row)
            if is_best:
                self.folder.save_best(trainer.model, self.corpus.tokenizer)
        self.folder.save(state)
        if row is not None:
            model, tokenizer = trainer.model.eval(), self.corpus.tokenizer
            loaded = LoadedModel("in training", model, tokenizer, trainer.process.device, "fp32")
            texts = [sample(loaded, prompt, seed=0, max_new_tokens=SAMPLE_TOKENS) for prompt in self.corpus.prompts]
            self.folder.add_samples(row.step, texts)
            self.folder.draw_curve()


class ProgressBar:
    """A progress bar on a terminal, elsewhere a line every LINE_STEPS updates; only the first process prints."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.begun = trainer, (trainer.n_tokens, trainer.seconds)
        disable = None if trainer.process.is_first else True  # None: unless on a terminal
        self.bar = tqdm(total=trainer.recipe.steps, initial=trainer.step, unit="step", disable=disable)

    def show(self) -> None:
        """Show the latest update: the mean loss of the last few, and the mean speed."""
        trainer = self.trainer
        loss = fmean(trainer.losses[-LINE_STEPS:])
        speed = (trainer.n_tokens - self.begun[0]) / (trainer.seconds - self.begun[1])
        if not self.bar.disable:
            self.bar.set_postfix_str(f"loss {loss:.4f}, {speed:,.0f} tokens/s", refresh=False)
            self.bar.update()
        elif trainer.step % LINE_STEPS == 0:
            self.print(f"step {trainer.step}/{trainer.recipe.steps} loss {loss:.4f}, {speed:,.0f} tokens/s")

    def print(self, line: str) -> None:
        """Print a line, above the bar if there is one."""
        if self.trainer.process.is_first:
            self.bar.write(line)
            sys.stdout.flush()

    def close(self) -> None:
        """Leave the bar on the terminal as it is."""
        self.bar.close()
