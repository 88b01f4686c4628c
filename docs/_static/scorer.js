// Pages that mention everything come after those that explain it.
var Scorer = {
  score: ([docname, title, anchor, description, score]) =>
    /^(about\/changelog|decisions|benchmark)/.test(docname) ? score - 100 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
