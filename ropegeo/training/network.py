"""The network of the controlled experiment: GPT-J with one head a layer; how it is made, read and run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ropegeo._arrays import IntArray
from ropegeo.errors import FileFormatError, InvalidInputError
from ropegeo.tasks import ControlledTask, TaskBatch, read_task
from ropegeo.training.extra import import_models
from ropegeo.training.recipes import POSITIONS, TrainingRecipe

CONFIG, WEIGHTS = "config.json", "model.safetensors"
MAX_CONFIG_BYTES = 1_000_000
TASK_KEY = "ropegeo_task"
"""Where config.json says which task a model was trained on; transformers keeps keys it does not know."""
TOKENS_AT_ONCE = 16_384
"""Tokens of one forward pass, few enough for attention over 850 tokens to stay in the cache."""


def config_of(task: ControlledTask, recipe: TrainingRecipe, *, dtype: str) -> dict[str, Any]:
    """The config.json of a model, as transformers reads it."""
    return {
        "model_type": "gptj",
        "architectures": ["GPTJForCausalLM"],
        "vocab_size": len(task.vocabulary),
        "n_positions": POSITIONS,
        "n_embd": recipe.width,
        "n_layer": recipe.layers,
        "n_head": 1,
        "rotary_dim": recipe.width,
        "n_inner": None,
        "activation_function": "gelu_new",
        "resid_pdrop": recipe.dropout,
        "embd_pdrop": recipe.dropout,
        "attn_pdrop": recipe.dropout,
        "layer_norm_epsilon": 1e-5,
        "initializer_range": 0.02,
        "bos_token_id": None,
        "eos_token_id": None,
        "tie_word_embeddings": False,
        "use_cache": False,
        "torch_dtype": dtype,
        TASK_KEY: task.to_dict(),
    }


def make_network(config: dict[str, Any]) -> Any:
    """A `GPTJForCausalLM` with fresh weights from torch's own generator, in float32."""
    _, transformers = import_models("make_network")
    known = {key: value for key, value in config.items() if key not in ("model_type", "torch_dtype", TASK_KEY)}
    return transformers.GPTJForCausalLM(transformers.GPTJConfig(**known))


def read_config(folder: Path) -> dict[str, Any]:
    """The config.json of a model folder.

    Raises:
        FileFormatError: not a folder, no config.json, or not JSON.
    """
    path = folder / CONFIG
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise FileFormatError(f"{path} has more than {MAX_CONFIG_BYTES} bytes; that is no config.json")
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileFormatError(f"model {str(folder)!r}: {CONFIG} cannot be read ({reason})") from error
    if not isinstance(data, dict):
        raise FileFormatError(f"model {str(folder)!r}: {CONFIG} is not a JSON object")
    return data


def task_of(folder: Path) -> ControlledTask:
    """The task a model was trained on, from its config.json.

    Raises:
        FileFormatError: it does not say, or says something that is no task.
    """
    config = read_config(folder)
    if TASK_KEY not in config:
        raise FileFormatError(
            f"model {str(folder)!r}: {CONFIG} has no {TASK_KEY!r}; give a model that 'ropegeo train' made"
        )
    try:
        return read_task(config[TASK_KEY])
    except InvalidInputError as error:
        raise FileFormatError(f"model {str(folder)!r}: {TASK_KEY!r} of {CONFIG} is wrong: {error}") from error


def load_network(folder: Path, *, length: int) -> Any:
    """A trained model with its weights as stored, in float32 arithmetic, ready for sequences up to `length`.

    Raises:
        FileFormatError: files missing or damaged, or weights that are not those of the config.
    """
    torch, _ = import_models("load_network")
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    config = read_config(folder)
    if config.get("model_type") != "gptj":
        raise FileFormatError(f"model {str(folder)!r}: model_type is {config.get('model_type')!r}; 'gptj' is read here")
    try:
        weights = load_file(folder / WEIGHTS)
    except (OSError, SafetensorError, ValueError) as error:
        raise FileFormatError(f"model {str(folder)!r}: {WEIGHTS} cannot be read ({error})") from error
    try:
        network = make_network(config | {"n_positions": max(length, POSITIONS)})
        network.load_state_dict({name: value.to(torch.float32) for name, value in weights.items()}, strict=True)
    except (RuntimeError, TypeError, ValueError, AttributeError) as error:
        first = " ".join(str(error).split())[:200]
        raise FileFormatError(f"model {str(folder)!r}: {WEIGHTS} does not fit {CONFIG} ({first})") from error
    if not all(bool(torch.isfinite(value).all()) for value in weights.values()):
        raise FileFormatError(f"model {str(folder)!r}: {WEIGHTS} holds NaN or infinity")
    return network.eval()


def last_logits(network: Any, tokens: Any) -> Any:
    """(count, vocabulary) logits after the last token of each row."""
    return network.lm_head(network.transformer(tokens, use_cache=False).last_hidden_state[:, -1])


def predictions(network: Any, batch: TaskBatch) -> IntArray:
    """(count,) ids of the tokens that the model ranks first, a few sequences at a time."""
    torch, _ = import_models("predictions")
    rows = max(1, TOKENS_AT_ONCE // batch.length)
    found = []
    was_training = network.training
    network.eval()
    with torch.inference_mode():
        for start in range(0, len(batch), rows):
            tokens = torch.from_numpy(np.array(batch.tokens[start : start + rows]))
            found.append(last_logits(network, tokens).argmax(dim=1).numpy())
    network.train(was_training)
    return np.concatenate(found)


def correct_by_hops(network: Any, batch: TaskBatch) -> dict[int, tuple[int, int]]:
    """Hop count to (right answers, sequences)."""
    right = predictions(network, batch) == batch.answers
    return {
        hops: (int(np.sum(right & (batch.hops == hops))), int(np.sum(batch.hops == hops))) for hops in batch.task.hops
    }
