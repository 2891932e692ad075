// Requests to /api/v1, and the shapes of its answers as far as the page reads them.
import { useEffect, useRef, useState } from "preact/hooks";
import { answerFrom, reportAnswers } from "./report";
import { TOKEN_NEEDED, headers } from "./token";

export type Health = "right" | "wrong" | "held" | "foreign" | "unknown";
export const HEALTHS: Health[] = ["wrong", "held", "unknown", "foreign", "right"];
export type Counts = Record<Health, number>;

export interface Related {
  object: string;
  field?: string;
  note: string;
}

export interface Diagnostic {
  reason: string;
  code: string;
  severity: string;
  object?: string;
  field?: string;
  message: string;
  help: string;
  fix?: string;
  related?: Related[];
}

export interface Overview {
  version: string;
  command: string;
  mode: "observe" | "act";
  provider?: string;
  intervalSeconds?: number;
  generation: number;
  asOf: number;
  namesAsOf: number;
  seenAt?: number;
  isCurrent: boolean;
  troubles?: string[];
  notes: string[];
  counts: Counts;
  names: number;
  objects: number;
  records: number;
  certificates: number;
  held: number;
  steps: number;
  zones: number;
  /** Whether namespaces are left out that the reader may not see. */
  isRestricted?: boolean;
  problems: Diagnostic[];
}

export interface NameRow {
  hostname: string;
  health: Health;
  verdict: string;
  cause?: Diagnostic;
  zone?: string;
  namespaces: string[];
  gateways: string[];
  routes: string[];
  records: string[];
  notAfter?: number;
}

export interface Names {
  asOf: number;
  total: number;
  matching: number;
  offset: number;
  counts: Counts;
  facets: { namespaces: string[]; gateways: string[]; zones: string[]; reasons: string[] };
  items: NameRow[];
}

export interface Link {
  role: string;
  name: string;
  detail?: string;
  holds: boolean;
}

export interface Withheld {
  reason: string;
  message: string;
  object: string;
  field: string;
}

export interface Chain {
  works: boolean;
  links: Link[];
  intersected?: string;
  broken?: Diagnostic;
  withheld?: Withheld;
  notes?: Diagnostic[];
}

export interface Step {
  verb: string;
  name: string;
  type?: string;
  old: string[] | null;
  new: string[] | null;
  because: string;
  zone: string;
  provider?: string;
  routes: string[];
  outcome?: string;
  error?: string;
}

export interface Held {
  reason: string;
  code: string;
  message: string;
  help: string;
  zone?: string;
  name: string;
  type?: string;
  verb?: string;
  old: string[];
  new: string[];
  object?: string;
}

export interface ActivityEntry {
  number: number;
  at: number;
  kind: "written" | "failed" | "held" | "released" | "certificate";
  name?: string;
  provider?: string;
  text: string;
  because?: string;
  reason?: string;
  objects?: string[];
}

export interface RequestOutcome {
  listener: string;
  url: string;
  outcome: string;
  status?: number;
  route?: string;
  rule?: number;
  backend?: string;
  location?: string;
  fails: boolean;
  cause?: Diagnostic;
}

export interface Issuing {
  secret: string;
  wanted: string[];
  held: string[];
  notAfter?: number;
  issuer?: string;
  unusable?: string;
  renewal?: number;
  order?: { step: string; names: string[]; lastError?: string };
  missing: { hostname: string; reason: string; message: string }[];
}

export interface Name {
  asOf: number;
  hostname: string;
  health: Health;
  verdict: string;
  cause?: Diagnostic;
  causes?: Diagnostic[];
  zone?: string;
  recordSets: { name: string; type: string; provider?: string; wanted: string[]; stored: string[] | null }[];
  requests?: RequestOutcome[];
  certificates?: {
    listener: string;
    secret: string;
    wanted: boolean;
    unwanted?: string;
    held: string;
    covers?: boolean;
    notAfter?: number;
  }[];
  issuing?: Issuing[];
  withheld?: Withheld[];
  passedOver?: { object: string; because: string }[];
  chains: Chain[];
  openListeners?: string[];
  similar?: string[];
  /** Namespaces whose routes ask for it too, and may not be seen. */
  otherNamespaces?: string[];
  /** Namespaces that hold it, where nothing else of it may be seen. */
  heldBy?: string[];
  addresses?: Probed[];
  held: Held[];
  steps: Step[];
  activity: ActivityEntry[];
}

export interface Probed {
  policy?: string;
  hostname: string;
  address: string;
  state: string;
  since?: string;
  published: boolean;
  error?: string;
}

export interface FlowNode {
  id: string;
  kind: string;
  name: string;
  holds: boolean;
  detail?: string;
  reason?: string;
  count?: number;
  broken?: number;
}

export interface FlowEdge {
  from: string;
  to: string;
  state: "works" | "broken" | "not-permitted";
  reason?: string;
}

export interface Flow {
  asOf: number;
  nodes: FlowNode[];
  edges: FlowEdge[];
  routes: number;
  isCollapsed: boolean;
  leftOut: number;
}

export interface Plan {
  asOf: number;
  digest: string;
  confirmation?: string;
  stepCount: number;
  heldCount: number;
  steps: Step[];
  held: Held[];
  unread: string[];
}

export interface Certificates {
  asOf: number;
  items: {
    secret: string;
    listeners: string[];
    planned?: { dnsNames: string[]; issuer?: string; policy?: string };
    issuing?: Issuing;
    held: string[];
    notAfter?: number;
    unusable?: string;
    /** Hostnames that listeners serve with it; what the certificate does not cover comes first. */
    served: Served[];
    servedCount: number;
  }[];
}

export interface Served {
  hostname: string;
  coveredBy?: string;
  tooDeepFor?: string;
}

export interface Routed {
  outcome: string;
  status?: number;
  listener?: string;
  route?: string;
  rule?: number;
  backends?: { backend: string; port?: number; weight: number }[];
  unavailable?: { backend: string; weight: number; reason: string }[];
  request?: { host: string; path: string };
  location?: string;
  because: string[];
}

/** An answer, or why there is none. */
export type Answer<T> = { data?: T; error?: string };

/** A path below /api/v1 with its query; empty values are left out. */
export function path(base: string, query: Record<string, string | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value) search.append(key, value);
  const text = search.toString();
  return text ? `${base}?${text}` : base;
}

/** The request itself is wrong: asking again gives the same. */
class Refused extends Error {}

export async function get<T>(of: string, signal?: AbortSignal): Promise<T> {
  const report = reportAnswers();
  if (report) {
    try {
      return answerFrom(report, of) as T;
    } catch (error) {
      throw new Refused((error as Error).message);
    }
  }
  const limit = AbortSignal.timeout(60_000);
  const response = await fetch(`api/v1/${of}`, { headers: headers(), signal: signal ? AbortSignal.any([signal, limit]) : limit });
  if (response.ok) return (await response.json()) as T;
  if (response.status === 401) dispatchEvent(new Event(TOKEN_NEEDED));
  const refusal = await response.json().catch(() => ({}));
  const message = String(refusal.error ?? `the server answered ${response.status}`);
  throw response.status < 500 ? new Refused(message) : new Error(message);
}

/** The answer to a path, asked again when `version` changes; the former answer stays until the next one is there. */
export function useAnswer<T>(of: string | undefined, version: number): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T> & { of?: string | undefined }>({});
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (!of) return;
    const stop = new AbortController();
    let again: number | undefined;
    get<T>(of, stop.signal).then(
      (data) => setAnswer({ data, of }),
      (error: Error) => {
        if (stop.signal.aborted) return;
        setAnswer((before) => ({ ...(before.of === of ? before : {}), error: error.message, of }));
        if (!(error instanceof Refused)) again = setTimeout(() => setAttempt((before) => before + 1), 5000);
      },
    );
    return () => {
      stop.abort();
      clearTimeout(again);
    };
  }, [of, version, attempt]);
  return answer.of === of ? answer : {};
}

/** What is known of the server. */
export interface Live {
  overview?: Overview;
  /** Counts changes that the server told. */
  version: number;
  /** When the server was last heard of, in milliseconds. */
  heardAt?: number;
  /** Why what is shown may be old. */
  stale?: string;
  /** Whether the server wants to know who looks. */
  needsToken?: boolean;
}

/** How long the server may be silent; it says every ten seconds that it is alive. */
const SILENCE = 25_000;

/** How long the page waits before it asks for events again, in milliseconds. */
const AGAIN = 2000;

/** Reads server-sent events until the stream ends. EventSource could not send a token. */
async function events(signal: AbortSignal, told: (event: string) => void) {
  const response = await fetch("api/v1/events", { headers: headers(), signal });
  if (response.status === 401) dispatchEvent(new Event(TOKEN_NEEDED));
  if (!response.ok || !response.body) throw new Error(`the server answered ${response.status}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("event: ")) told(line.slice(7));
  }
}

/** Follows the server: its overview, and the number of the last change. The stream rests while the page is hidden, because a browser opens few of them. */
export function useLive(): Live {
  const [overview, setOverview] = useState<Overview>();
  const [version, setVersion] = useState(0);
  const [error, setError] = useState<string>();
  const [now, setNow] = useState(Date.now());
  const [needsToken, setNeedsToken] = useState(false);
  const heardAt = useRef<number | undefined>(undefined);
  const heard = () => {
    heardAt.current = Date.now();
  };

  useEffect(() => {
    if (reportAnswers()) return;
    let stop: AbortController | undefined;
    const open = async () => {
      stop?.abort();
      const own = new AbortController();
      stop = own;
      while (!own.signal.aborted) {
        await events(own.signal, (event) => {
          heard();
          if (event !== "changed") return;
          // An error stays until the overview, which is asked for next, could be read.
          setNeedsToken(false);
          setVersion((before) => before + 1);
        }).catch(() => undefined);
        if (own.signal.aborted) return;
        setError("the server does not answer");
        await new Promise((done) => setTimeout(done, AGAIN));
      }
    };
    const visible = () => (document.hidden ? stop?.abort() : open());
    const asked = () => setNeedsToken(true);
    visible();
    document.addEventListener("visibilitychange", visible);
    addEventListener(TOKEN_NEEDED, asked);
    const clock = setInterval(() => setNow(Date.now()), 1000);
    return () => {
      document.removeEventListener("visibilitychange", visible);
      removeEventListener(TOKEN_NEEDED, asked);
      clearInterval(clock);
      stop?.abort();
    };
  }, []);

  useEffect(() => {
    const stop = new AbortController();
    const ask = () =>
      get<Overview>("overview", stop.signal).then(
        (data) => {
          heard();
          setError(undefined);
          setOverview(data);
        },
        (failed: Error) => {
          if (!stop.signal.aborted) setError(failed.message);
        },
      );
    ask();
    const again = setInterval(ask, 15_000);
    return () => {
      stop.abort();
      clearInterval(again);
    };
  }, [version]);

  if (reportAnswers()) return { version, ...(overview && { overview }), ...(heardAt.current && { heardAt: heardAt.current }) };
  const silent = heardAt.current !== undefined && now - heardAt.current > SILENCE;
  const stale = error ?? (silent ? "the server does not answer" : overview && troubleOf(overview, now));
  return { version, needsToken, ...(overview && { overview }), ...(stale && { stale }), ...(heardAt.current && { heardAt: heardAt.current }) };
}

/** Why the server's own data is old. */
function troubleOf(overview: Overview, now: number): string | undefined {
  if (!overview.isCurrent) return overview.troubles?.[0] ?? "something could not be read";
  const limit = overview.intervalSeconds && overview.intervalSeconds * 3 + 30;
  if (limit && now / 1000 - overview.asOf > limit) return "the zones were not compared for long";
  if (overview.seenAt && now / 1000 - overview.seenAt > 180) return "the API server was not heard of for long";
  return undefined;
}

/** The moment up to which what is shown is known to be so, in seconds since 1970. Where files are watched it is the moment when the server was last heard of. */
export function knownAt(live: Live): number | undefined {
  const { overview, heardAt } = live;
  if (!overview || !heardAt) return undefined;
  if (reportAnswers()) return overview.asOf;
  const compared = overview.intervalSeconds || !overview.isCurrent ? overview.asOf : heardAt / 1000;
  return Math.min(compared, overview.seenAt ?? compared);
}
