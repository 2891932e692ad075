// The data of a report, which is a page in one file: answers that the program made beforehand, in place of a server.
import type { Counts, NameRow, Names } from "./api";

type Answers = Record<string, unknown>;

let answers: Answers | null | undefined;

/** The answers in the document, if it is a report. */
export function reportAnswers(): Answers | undefined {
  if (answers === undefined) {
    const text = document.getElementById("report-data")?.textContent;
    answers = text ? (JSON.parse(text) as Answers) : null;
  }
  return answers ?? undefined;
}

/** The answer to a path below /api/v1 from the report; what needs a server is refused. */
export function answerFrom(all: Answers, of: string): unknown {
  const [path = "", search = ""] = of.split("?", 2);
  const query = new URLSearchParams(search);
  if (path === "names") return namesFrom(all.names as Names, query);
  const known = all[decodeURIComponent(path)];
  if (known !== undefined) return known;
  throw new Error(path === "route" ? "a report is a picture of one moment: `gatepost route` and `gatepost serve` answer requests" : "this is not part of the report");
}

/** What the server does with the list of names. */
function namesFrom(all: Names, query: URLSearchParams): Names {
  const of = (name: string) => query.get(name) || undefined;
  const text = of("q")?.trim().toLowerCase();
  const texts = (row: NameRow) => [row.hostname, ...row.routes, ...row.gateways, row.cause?.reason, row.cause?.code, row.cause?.object];
  const taken = all.items.filter(
    (row) =>
      (!of("namespace") || row.namespaces.includes(of("namespace") as string)) &&
      (!of("gateway") || row.gateways.includes(of("gateway") as string)) &&
      (!of("zone") || row.zone === of("zone")) &&
      (!of("reason") || row.cause?.reason === of("reason") || row.cause?.code === of("reason")) &&
      (!text || texts(row).some((one) => one?.toLowerCase().includes(text))),
  );
  const counts: Counts = { right: 0, wrong: 0, held: 0, foreign: 0, unknown: 0 };
  for (const row of taken) counts[row.health] += 1;
  const health = of("health")?.split(",");
  const rows = taken.filter((row) => !health || health.includes(row.health));
  const key: Record<string, (row: NameRow) => string | number> = {
    name: (row) => row.hostname,
    zone: (row) => row.zone ?? "",
    expiry: (row) => row.notAfter ?? Infinity,
  };
  const by = key[of("sort") ?? ""];
  if (by) rows.sort((a, b) => (by(a) < by(b) ? -1 : by(a) > by(b) ? 1 : 0));
  if (of("order") === "down") rows.reverse();
  const offset = Number(of("offset") ?? 0);
  const items = rows.slice(offset, offset + Number(of("limit") ?? 100));
  return { ...all, counts, matching: rows.length, offset, items };
}
