"""Step 13: loading weights."""

from gpt.course.step import Mistake, Step, Test, Words

CODE = '''
def load(folder):
    """Load the GPT from a folder with config.json and model.safetensors, in evaluation mode.

    The bundled model uses the names of your parameters. A GPT-2 from the hub differs in four ways: its context is
    called n_positions, names may begin with "transformer.", buffers such as h.0.attn.bias can be ignored, and c_attn,
    c_proj and c_fc are transposed. Neither stores a tied head.
    || 从含有 config.json 和 model.safetensors 的文件夹读出 GPT，设为评估模式。

    自带的模型与你的参数同名。Hub 上的 GPT-2 有四点不同：上下文长度叫 n_positions；名字可能以 "transformer." 开头；
    h.0.attn.bias 之类的缓冲用不上；c_attn、c_proj、c_fc 是转置的。两者都不单独保存绑定的输出头。
    """
    facts = json.loads((Path(folder) / "config.json").read_text())
    is_gpt2 = "n_positions" in facts
    facts["block_size"] = facts["n_positions" if is_gpt2 else "block_size"]
    model = GPT(Config(**{field.name: facts[field.name] for field in fields(Config) if field.name in facts}))
    stored = load_file(Path(folder) / "model.safetensors")
    stored = {name.removeprefix("transformer."): value for name, value in stored.items()}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            turned = is_gpt2 and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))
            weight.copy_(stored[name].T if turned else stored[name])
    return model.eval()
'''
RUN = """
with torch.no_grad():
    result = load(folder)(idx)
"""

STEP = Step(
    key="13",
    title=Words("Loading weights", "加载权重"),
    says=Words(
        "A checkpoint is a dictionary of names and tensors. Read the sizes, build the model, and copy every tensor to "
        "the parameter with the same name. OpenAI stored four matrices of each block as (in, out), while nn.Linear "
        "uses (out, in), so these must be transposed.",
        "检查点是一个字典，每个名字对应一个张量。读出尺寸，建好模型，把每个张量复制到同名参数里。OpenAI 把每个块的"
        "四个矩阵存成（输入，输出），而 nn.Linear 是（输出，输入），所以要转置。",
    ),
    code=CODE,
    tests=(
        Test(
            name=Words("the bundled model", "自带的模型"),
            inputs=lambda reference: {"folder": reference.bundled_folder, "idx": reference.idx[:2]},
            run=RUN,
            expected=lambda reference: reference.logits(reference.idx[:2]),
        ),
        Test(
            name=Words("a GPT-2 folder written by transformers", "transformers 写出的 GPT-2 文件夹"),
            inputs=lambda reference: {"folder": reference.gpt2_folder, "idx": reference.idx[:2]},
            run=RUN,
            expected=lambda reference: reference.short(reference.idx[:2]).detach(),
        ),
        Test(
            name=Words("evaluation mode", "评估模式"),
            inputs=lambda reference: {"folder": reference.gpt2_folder},
            run="result = int(load(folder).training)",
            expected=lambda reference: 0,
        ),
    ),
    mistakes=(
        Mistake(
            "            weight.copy_(stored[name].T if turned else stored[name])",
            "            pass",
            Words("The weights are still random: copy them.", "权重还是随机的，要把读出的权重复制进去。"),
        ),
        Mistake(
            "turned = is_gpt2 and name.endswith",
            "turned = name.endswith",
            Words(
                "You also transpose the bundled matrices. Only a GPT-2 from the hub needs that.",
                "自带模型的矩阵也转置了。只有 Hub 上的 GPT-2 才需要。",
            ),
        ),
        Mistake(
            "stored[name].T if turned else stored[name]",
            "stored[name]",
            Words(
                "c_attn, c_proj and c_fc of a GPT-2 must be transposed: .T.",
                "GPT-2 的 c_attn、c_proj、c_fc 要转置：.T。",
            ),
        ),
        Mistake(
            "stored[name].T if turned else stored[name]",
            "stored[name].T if stored[name].shape != weight.shape else stored[name]",
            Words(
                "attn.c_proj is square, so its shape does not show that it must be transposed. Use the names.",
                "attn.c_proj 是方阵，看形状看不出要不要转置。请按名字判断。",
            ),
        ),
        Mistake(
            '            turned = is_gpt2 and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))',
            "            turned = is_gpt2 and weight.dim() == 2",
            Words(
                "Transpose only the linear layers, not wte and wpe.",
                "wte 和 wpe 不转置，只转置线性层。",
            ),
        ),
        Mistake(
            'name.removeprefix("transformer.")',
            "name",
            Words(
                'The names in a GPT-2 begin with "transformer.": remove this prefix.',
                'GPT-2 里的名字以 "transformer." 开头，要去掉。',
            ),
        ),
        Mistake(
            'facts["block_size"] = facts["n_positions" if is_gpt2 else "block_size"]',
            "pass",
            Words(
                "GPT-2 calls its context n_positions, but you use the default of Config.",
                "GPT-2 把上下文长度叫作 n_positions，你用的却是 Config 的默认值。",
            ),
        ),
        Mistake(
            "return model.eval()",
            "return model.train()",
            Words("Set evaluation mode: model.eval().", "要设为评估模式：model.eval()。"),
        ),
    ),
)
