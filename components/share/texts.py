"""The words of the share menus, as in components.texts."""

SHARE: dict[str, tuple[str, str]] = {
    "share.name": ("Take this text along", "带走这段文本"),
    "share.link": ("Copy link", "复制链接"),
    "share.link.title": (
        "An address that opens this text, these settings and this view again",
        "一个网址：打开后是同样的文本、设置和视图",
    ),
    "share.python": ("Copy Python", "复制 Python"),
    "share.python.title": ("A program that writes this text again", "一段能重新写出这段文本的程序"),
    "share.save": ("Save", "保存"),
    "share.text": ("The text (.txt)", "文本（.txt）"),
    "share.document": ("The document with its branches (.json)", "文档及其分支（.json）"),
    "share.csv": ("The selected token's probabilities (.csv)", "选中词元处的概率（.csv）"),
    "share.open": ("Open a document", "打开文档"),
    "share.open.title": ("A .json file that was saved here", "在这里保存过的 .json 文件"),
    "share.close": ("Close", "关闭"),
    "share.link.copied": (
        "Link copied. Opening it writes the same text again.",
        "链接已复制。打开后会重新写出同样的文本。",
    ),
    "share.python.copied": ("Program copied. It prints this text.", "程序已复制。运行后会打印这段文本。"),
    "share.manual": ("Select and copy:", "请选中并复制："),
    "share.saved": ("Saved {name}.", "已保存 {name}。"),
    "share.too_long": (
        "A link to this text would have {n} characters, more than the {limit} that links carry well. Save the document "
        "instead.",
        "这段文本的链接将有 {n} 个字符，超过链接适用的 {limit} 个。请改为保存文档。",
    ),
    "share.refused": (
        "Not all of this link could be followed: {names}. The usual values stand there instead.",
        "链接中有些内容无法采用：{names}。这些地方用了默认值。",
    ),
    "share.file_too_large": (
        "The file has {n} MB; a document has at most {limit} MB.",
        "文件有 {n} MB；文档最多 {limit} MB。",
    ),
    "share.unknown_model": (
        "The document was written by “{model}”, which is not in the list of models here.",
        "文档由“{model}”写成，而这里的模型列表中没有它。",
    ),
    "share.opened": ("Opened {name}: {n} tokens.", "已打开 {name}：{n} 个词元。"),
    "share.opened.edits": (
        " A changed model wrote it: its changes stand in “Change it”, and here the unchanged model reads the text.",
        "它由改动过的模型写成：那些改动已放进“改动”，而这里是未改动的模型在读这段文本。",
    ),
    # the buttons of every chart
    "chart.save": ("Save this picture as {kind}", "将此图保存为 {kind}"),
}
