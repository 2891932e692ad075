// All names in a table; filters, order and pages are the server's work. Only the rows in sight are in the document.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Live, type NameRow, type Names, HEALTHS, get, path, useAnswer } from "../api";
import { ApiLink, Expiry, HealthMark, NameLink, Problem, Reason, word } from "../parts";
import { change } from "../place";

/** The height of a row, which the style sheet holds as well. */
const ROW = 44;
/** Rows of one answer, and rows above and below those in sight. */
const CHUNK = 100;
const MARGIN = 10;
/** The table is drawn anew after this many rows, which is less than the margin, and not with every frame. */
const STRIDE = 5;

type Query = Record<string, string>;

function filters(query: Query): Record<string, string | undefined> {
  const { q, namespace, gateway, zone, health, reason, sort, order } = query;
  return { q, namespace, gateway, zone, health, reason, sort, order };
}

/** The rows of chunks that were in sight, asked for anew when the filters or the data change. */
function useRows(query: Query, version: number, first: number) {
  const [chunks, setChunks] = useState<{ key: string; rows: Map<number, NameRow[]> }>({ key: "", rows: new Map() });
  const base = JSON.stringify(filters(query));
  const key = `${base} ${version}`;
  const chunk = Math.floor(first / CHUNK) * CHUNK;
  useEffect(() => {
    const stop = new AbortController();
    const has = (offset: number) => chunks.key === key && chunks.rows.has(offset);
    for (const offset of [chunk, chunk + CHUNK]) {
      if (offset === 0 || has(offset)) continue;
      get<Names>(path("names", { ...filters(query), offset: String(offset), limit: String(CHUNK) }), stop.signal).then(
        (names) =>
          setChunks((before) => ({
            key,
            rows: new Map([...(before.key === key ? before.rows : []), [offset, names.items]]),
          })),
        () => undefined,
      );
    }
    return () => stop.abort();
  }, [key, chunk]);
  return chunks.rows;
}

function Choice({ name, label, values, query }: { name: string; label: string; values: string[]; query: Query }) {
  const chosen = query[name] ?? "";
  const all = chosen && !values.includes(chosen) ? [chosen, ...values] : values;
  return (
    <label>
      <span>{label}</span>
      <select value={chosen} onChange={(event) => change({ [name]: event.currentTarget.value })}>
        <option value="">all</option>
        {all.map((value) => (
          <option value={value} selected={value === chosen}>
            {value.replace(/^Gateway\//, "")}
          </option>
        ))}
      </select>
    </label>
  );
}

function Filters({ names, query }: { names: Names | undefined; query: Query }) {
  const facets = names?.facets ?? { namespaces: [], gateways: [], zones: [], reasons: [] };
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <label class="wide">
        <span>Search (press /)</span>
        <input
          type="search"
          placeholder="hostname, object or reason"
          value={query.q ?? ""}
          onInput={(event) => change({ q: event.currentTarget.value }, true)}
        />
      </label>
      <Choice name="namespace" label="Namespace" values={facets.namespaces} query={query} />
      <Choice name="gateway" label="Gateway" values={facets.gateways} query={query} />
      <Choice name="zone" label="Zone" values={facets.zones} query={query} />
      <Choice name="reason" label="Reason" values={facets.reasons} query={query} />
      <fieldset>
        <legend>Health</legend>
        {HEALTHS.map((health) => (
          <button
            type="button"
            aria-pressed={query.health === health}
            onClick={() => change({ health: query.health === health ? "" : health })}
          >
            <HealthMark health={health} count={names?.counts[health] ?? 0} />
          </button>
        ))}
      </fieldset>
    </form>
  );
}

const COLUMNS: [string, string | undefined][] = [
  ["Health", "health"],
  ["Name", "name"],
  ["DNS", undefined],
  ["Certificate", "expiry"],
  ["Route", undefined],
  ["Zone", "zone"],
  ["First cause", undefined],
];

function Heads({ query }: { query: Query }) {
  const sort = query.sort ?? "health";
  const isDown = query.order === "down";
  return (
    <tr>
      {COLUMNS.map(([title, by]) => (
        <th scope="col" aria-sort={by && by === sort ? (isDown ? "descending" : "ascending") : undefined}>
          {by ? (
            <button type="button" onClick={() => change({ sort: by, order: by === sort && !isDown ? "down" : "" })}>
              {title} {by === sort ? (isDown ? "↓" : "↑") : ""}
            </button>
          ) : (
            title
          )}
        </th>
      ))}
    </tr>
  );
}

function Row({ row, index }: { row: NameRow | undefined; index: number }) {
  if (!row) {
    return (
      <tr aria-rowindex={index + 2}>
        <td colSpan={COLUMNS.length}>…</td>
      </tr>
    );
  }
  return (
    <tr aria-rowindex={index + 2}>
      <td>
        <HealthMark health={row.health} />
      </td>
      <td class="name">
        <NameLink name={row.hostname} />
      </td>
      <td title={row.records.join("\n")}>{row.records[0] ?? "none"}{row.records.length > 1 && ` +${row.records.length - 1}`}</td>
      <td>{row.notAfter ? <Expiry at={row.notAfter} /> : ""}</td>
      <td title={row.routes.join("\n")}>{row.routes[0] ?? ""}{row.routes.length > 1 && ` +${row.routes.length - 1}`}</td>
      <td>{row.zone ?? ""}</td>
      <td title={row.cause?.message}>
        {row.cause && (
          <>
            <Reason reason={row.cause.reason} code={row.cause.code} /> {row.cause.message}
          </>
        )}
      </td>
    </tr>
  );
}

export function NamesView({ live, query }: { live: Live; query: Query }) {
  const first = useAnswer<Names>(path("names", { ...filters(query), limit: String(CHUNK) }), live.version);
  const [scroll, setScroll] = useState({ top: 0, height: 600 });
  const box = useRef<HTMLDivElement>(null);
  const from = Math.max(0, Math.floor(scroll.top / ROW) - MARGIN);
  const more = useRows(query, live.version, from);
  const names = first.data;
  const measure = () => {
    if (!box.current) return;
    const [stride, height] = [STRIDE * ROW, box.current.clientHeight];
    const top = Math.floor(box.current.scrollTop / stride) * stride;
    setScroll((before) => (before.top === top && before.height === height ? before : { top, height }));
  };
  useEffect(() => {
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);
  const matching = names?.matching ?? 0;
  const to = Math.min(matching, Math.ceil((scroll.top + scroll.height) / ROW) + STRIDE + MARGIN);
  const rowAt = (index: number) => {
    const chunk = Math.floor(index / CHUNK) * CHUNK;
    return (chunk === 0 ? names?.items : more.get(chunk))?.[index - chunk];
  };
  const shown = Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
  // What does not scroll is not drawn anew while the rows do.
  const above = useMemo(() => <Filters names={names} query={query} />, [names, query]);
  return (
    <>
      <h1>Names</h1>
      {above}
      <Problem error={first.error} />
      <p class="matching" role="status">
        {names ? `${matching} of ${names.total} names` : "reading…"}
        {query.health && `, only ${word(query.health as never) ?? query.health}`}{" "}
        <ApiLink path={path("names.csv", filters(query))} file="names.csv">
          as CSV
        </ApiLink>
      </p>
      <div
        class="rows"
        ref={box}
        tabIndex={0}
        role="region"
        aria-label="Names"
        onScroll={measure}
      >
        <table aria-rowcount={matching + 1}>
          <thead>
            <Heads query={query} />
          </thead>
          <tbody>
            <tr aria-hidden="true" class="space" style={{ height: `${from * ROW}px` }} />
            {shown.map((index) => (
              <Row key={index} row={rowAt(index)} index={index} />
            ))}
            <tr aria-hidden="true" class="space" style={{ height: `${(matching - Math.max(to, from)) * ROW}px` }} />
          </tbody>
        </table>
      </div>
    </>
  );
}
