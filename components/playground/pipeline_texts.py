"""The words of the pipeline card and of the presets, as in components.texts."""

PIPELINE: dict[str, tuple[str, str]] = {
    "preset": ("Preset", "预设"),
    "preset.greedy": ("greedy", "贪心"),
    "preset.careful": ("careful", "谨慎"),
    "preset.balanced": ("balanced", "均衡"),
    "preset.wild": ("wild", "奔放"),
    "pipeline": ("How did the settings shape the choice?", "采样设置怎样改变了选择？"),
    "pipeline.lead": (
        "From the model's logits to the probabilities that are drawn from, over all {total} tokens of the vocabulary, "
        "after {token}. Move a slider: the model need not run again.",
        "在 {token} 之后，词表全部 {total} 个词元从模型的 logit 到最终抽样概率的变化。拖动滑块即可，模型无需重新运行。",
    ),
    "pipeline.stage": ("stage", "阶段"),
    "pipeline.removed": ("removes", "去掉"),
    "pipeline.entropy": ("entropy, bits", "熵（比特）"),
    "pipeline.perplexity": ("perplexity", "困惑度"),
    "pipeline.raw": ("raw", "原始"),
    "pipeline.repetition_penalty": ("repetition", "重复惩罚"),
    "pipeline.temperature": ("temperature", "温度"),
    "pipeline.final": ("all together", "合计"),
    "pipeline.off": ("off", "关"),
    "pipeline.unit": ("Shown as", "显示为"),
    "pipeline.probability": ("probability", "概率"),
    "pipeline.log_probability": ("log-probability", "对数概率"),
    "pipeline.logit": ("logit", "logit 值"),
    "pipeline.log_probability.short": ("log-p", "对数概率"),
    "pipeline.rank": ("rank", "名次"),
    "pipeline.follow": ("Follow a token: pick one, or type its text or id", "追踪一个词元：选择，或输入文字或编号"),
    "pipeline.unknown": ("No token holds “{query}”.", "没有词元包含“{query}”。"),
    "pipeline.short.repetition_penalty": ("repeat", "重复"),
    "pipeline.short.temperature": ("temp.", "温度"),
    "pipeline.says.all": (
        "All {total} tokens can be drawn. Perplexity {before} → {after}.",
        "全部 {total} 个词元都可以被抽到。困惑度 {before} → {after}。",
    ),
    "pipeline.says": (
        "{kept} of {total} tokens can be drawn; together the others had {mass}. Perplexity {before} → {after}.",
        "{total} 个词元中有 {kept} 个可以被抽到；其余的合计概率为 {mass}。困惑度 {before} → {after}。",
    ),
    "pipeline.followed": (" {token}: {change}.", "{token} 的概率：{change}。"),
    "pipeline.followed.cut": (
        " {token} had {before}, rank {rank}, and was removed by {stage}.",
        "{token} 原有 {before}，名次 {rank}，被{stage}去掉。",
    ),
    "pipeline.note": (
        "Click a line to follow that token; a cross is where one was removed.",
        "点击一条线可追踪该词元；叉号表示它在此之后被去掉。",
    ),
}
