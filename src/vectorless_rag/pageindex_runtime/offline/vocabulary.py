"""
The words that headings and tables of contents are known by, in some languages.

Each is spelled as `vectorless_rag.pageindex_runtime.offline.text.key` spells it.
"""

from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TOC_HEADINGS = _words(
    """
    contents tableofcontents toc detailedcontents briefcontents
    inhalt inhaltsverzeichnis tabledesmatières sommaire índice indice contenido
    contenidos sumário inhoud inhoudsopgave innehåll innehållsförteckning indhold
    indholdsfortegnelse innhold sisällys sisällysluettelo spistreści obsah
    tartalom tartalomjegyzék cuprins i̇çindekiler içindekiler
    содержание оглавление зміст съдържание περιεχόμενα
    目录 目錄 目次 もくじ 차례 목차 الفهرس فهرس المحتويات فهرسالمحتويات
    تוכןעניינים תוכןהעניינים สารบัญ mụclục daftarisi
    """
)
"""Headings of a table of contents."""

OTHER_LISTS = _words(
    """
    figures tables listoffigures listoftables listofillustrations
    listofabbreviations listofalgorithms listofsymbols notation
    abbildungsverzeichnis tabellenverzeichnis tabledesfigures listedesfigures
    listedestableaux índicedefiguras índicedetablas 図目次 表目次 图目录 表目录
    قائمةالاشكال قائمةالجداول списокиллюстраций списоктаблиц
    """
)
"""Headings of lists that look like a table of contents and are none."""

FREE_HEADINGS = _words(
    """
    abstract summary executivesummary introduction preface foreword prologue
    acknowledgements acknowledgments acknowledgement acknowledgment dedication
    background conclusion conclusions discussion references bibliography
    workscited furtherreading glossary index epilogue afterword appendix
    appendices notes endnotes
    zusammenfassung vorwort einleitung literatur literaturverzeichnis anhang
    danksagung résumé préface avantpropos remerciements bibliographie annexe
    annexes resumen prefacio prólogo introducción conclusión conclusiones
    agradecimientos referencias bibliografía resumo introdução conclusão
    referências bibliografia введение заключение предисловие аннотация
    литература списоклитературы приложение приложения благодарности
    摘要 前言 序言 引言 绪论 結論 结论 参考文献 參考文獻 致谢 附录 附錄 索引
    はじめに 序論 おわりに まとめ 謝辞 付録 머리말 서론 결론 참고문헌 부록
    المقدمة مقدمة الخاتمة خاتمة المصادر المراجع الملحقات ملخص
    """
)
"""Headings that carry no number and are known by their words alone."""

_DIVISIONS: Mapping[str, str] = {
    "part": "part book volume title teil partie parte часть μέρος",
    "chapter": (
        "chapter kapitel chapitre capítulo capitolo hoofdstuk rozdział kapitola "
        "глава розділ κεφάλαιο chương bölüm"
    ),
    "section": (
        "section sect abschnitt sección sezione seção раздел lesson unit module"
    ),
    "article": "article artikel artículo articolo artigo статья rule",
    "annex": "appendix annex anhang annexe apéndice schedule приложение bilaga",
}

DIVISIONS: Mapping[str, str] = {
    word: kind for kind, words in _DIVISIONS.items() for word in words.split()
}
"""First word of a labelled heading, as ``Chapter 3``, to the kind of division."""

PREFIXED_DIVISIONS: Mapping[str, str] = {
    "الفصل": "chapter",
    "الباب": "part",
    "القسم": "section",
    "المادة": "article",
    "บทที่": "chapter",
    "ส่วนที่": "part",
}
"""The same for scripts without upper case."""

HAN_DIVISIONS: Mapping[str, str] = {
    "編": "part",
    "编": "part",
    "部": "part",
    "章": "chapter",
    "節": "section",
    "节": "section",
    "条": "article",
    "條": "article",
    "장": "chapter",
    "절": "section",
    "조": "article",
}
"""Counters after a number in headings such as 第三章."""

_ORDINALS = (
    "one two three four five six seven eight nine ten eleven twelve",
    "first second third fourth fifth sixth seventh eighth ninth tenth",
    "первая вторая третья четвертая пятая шестая седьмая восьмая девятая десятая",
    "первый второй третий четвертый пятый шестой седьмой восьмой девятый десятый",
    "الأول الثاني الثالث الرابع الخامس السادس السابع الثامن التاسع العاشر",
    "الأولى الثانية الثالثة الرابعة الخامسة السادسة السابعة الثامنة التاسعة العاشرة",
    "α β γ δ ε στ ζ η θ ι",
)

ORDINALS: Mapping[str, int] = {
    word: value
    for words in _ORDINALS
    for value, word in enumerate(words.split(), start=1)
}
"""Numbers written as words."""

LEANING_WORDS = _words(
    """
    this these those it its they their he she such however therefore thus hence
    moreover furthermore also but and or so then otherwise instead similarly
    """
)
"""First words of a sentence that leans on the one before."""

ABBREVIATIONS = _words(
    """
    e.g i.e cf al etc vs fig figs eq eqs sec secs ch no nos vol pp p ed eds mr mrs ms
    dr prof st jr sr inc ltd co corp dept approx resp ca bzw z.b d.h u.a art para
    pub stat reg regs rev memo univ ver v jan feb mar apr jun jul aug sep sept oct
    nov dec
    """
)
"""Words before a full stop that ends no sentence."""

SMALL_WORDS = _words(
    """
    a an and as at but by for from in into is nor of on or over per so the to under
    up upon via vs with without its not de la le les du des et en el los las y o del
    der die das und von zu im da do dos e per il i un una
    """
)
"""Words that stay in lower case inside a capitalised heading."""

COMMON_WORDS = _words(
    """
    that this these those with from which have been were when then will there their
    they them also such used using other only into same more some than each both
    must should could would about after before between through where while does
    what your very most many much like just over under here being made make
    """
)
"""English words of four letters and more that say nothing about a text."""
