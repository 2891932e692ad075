// Who serves a request, and why not the others: the form of `gatepost route`.
import { type Live, type Names, type Routed, path, useAnswer } from "../api";
import { Problem, Section } from "../parts";
import { change } from "../place";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

function RoutedAnswer({ answer }: { answer: Routed }) {
  const isServed = ["forward", "redirect", "cors-preflight"].includes(answer.outcome);
  const total = [...(answer.backends ?? []), ...(answer.unavailable ?? [])].reduce((sum, one) => sum + one.weight, 0);
  return (
    <Section title="Answer">
      <p class="verdict">
        {isServed ? "✓" : "✗"} {answer.outcome} {answer.status}
      </p>
      <dl>
        <dt>Listener</dt>
        <dd>{answer.listener ?? "none"}</dd>
        <dt>Route</dt>
        <dd>{answer.route ? `${answer.route}${answer.rule === undefined ? "" : `, rule ${answer.rule}`}` : "none"}</dd>
        {answer.backends?.map((one) => (
          <>
            <dt>Backend</dt>
            <dd>
              {one.backend}
              {one.port && `:${one.port}`}, {one.weight} of {total}
            </dd>
          </>
        ))}
        {answer.unavailable?.map((one) => (
          <>
            <dt>Unusable backend</dt>
            <dd>
              {one.backend} ({one.reason}), {one.weight} of {total}
            </dd>
          </>
        ))}
        {answer.location && (
          <>
            <dt>Location</dt>
            <dd>{answer.location}</dd>
          </>
        )}
      </dl>
      <h3>Because</h3>
      <ol>
        {answer.because.map((line) => (
          <li>{line}</li>
        ))}
      </ol>
    </Section>
  );
}

export function RouteView({ live, query }: { live: Live; query: Record<string, string> }) {
  const { data: names } = useAnswer<Names>("names?limit=1", live.version);
  const gateways = names?.facets.gateways.map((name) => name.replace(/^Gateway\//, "")) ?? [];
  const base = path("route", {
    url: query.url,
    method: query.method,
    gateway: query.gateway || (gateways.length === 1 ? gateways[0] : undefined),
    port: query.port,
  });
  const headers = (query.headers ?? "").split("\n").filter((line) => line.trim());
  const asked = headers.reduce((text, line) => `${text}&header=${encodeURIComponent(line)}`, base);
  const { data, error } = useAnswer<Routed>(query.url ? asked : undefined, live.version);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    change({
      url: text("url"),
      method: text("method"),
      gateway: text("gateway"),
      port: text("port"),
      headers: text("headers"),
    });
  };
  return (
    <>
      <h1>Route a request</h1>
      {/* What is typed is the form's own until it is sent: the page is drawn anew every second. */}
      <form class="filters" key={JSON.stringify(query)} onSubmit={submit}>
        <label class="wide">
          <span>URL</span>
          <input name="url" required placeholder="https://shop.example.org/cart" defaultValue={query.url ?? ""} />
        </label>
        <label>
          <span>Method</span>
          <select name="method">
            {METHODS.map((method) => (
              <option selected={method === (query.method ?? "GET")}>{method}</option>
            ))}
          </select>
        </label>
        <label>
          <span>Gateway</span>
          <input name="gateway" list="gateways" placeholder={gateways[0] ?? "namespace/name"} defaultValue={query.gateway ?? ""} />
          <datalist id="gateways">
            {gateways.map((gateway) => (
              <option value={gateway} />
            ))}
          </datalist>
        </label>
        <label>
          <span>Port of the listener</span>
          <input name="port" inputMode="numeric" placeholder="that of the URL" defaultValue={query.port ?? ""} />
        </label>
        <label class="wide">
          <span>Headers, one in a line</span>
          <textarea name="headers" rows={2} placeholder="x-team: blue" defaultValue={query.headers ?? ""} />
        </label>
        <button type="submit">Who serves it?</button>
      </form>
      <Problem error={error} />
      {data && !error && <RoutedAnswer answer={data} />}
    </>
  );
}
