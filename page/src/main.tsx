// The frame of the page: what is known of the server, the views, and which of them is shown.
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { type Live, HEALTHS, knownAt, useLive } from "./api";
import { HealthMark, ago } from "./parts";
import { type Place, href, usePlace } from "./place";
import { reportAnswers } from "./report";
import { keepToken, token } from "./token";
import { ActivityView } from "./views/activity";
import { CertificatesView } from "./views/certificates";
import { FlowView } from "./views/flow";
import { NameView } from "./views/name";
import { NamesView } from "./views/names";
import { PlanView } from "./views/plan";
import { ReasonView } from "./views/reason";
import { RouteView } from "./views/route";
import "./style.css";

const VIEWS: [string, string][] = [
  ["names", "Names"],
  ["flow", "Flow"],
  ["plan", "Plan"],
  ["certificates", "Certificates"],
  ["route", "Route a request"],
  ["activity", "Activity"],
];

function Age({ live }: { live: Live }) {
  const at = knownAt(live);
  if (at === undefined) return <span class="age">{live.stale ?? "reading…"}</span>;
  const age = ago(Date.now() / 1000 - at);
  return (
    <span class="age" role="status" aria-live="off">
      {live.stale ? `not current: ${live.stale}; as of ${age}` : `as of ${age}`}
    </span>
  );
}

function Head({ live, place }: { live: Live; place: Place }) {
  const { overview } = live;
  return (
    <header>
      <div class="bar">
        <a class="brand" href="#/">
          Gatepost
        </a>
        {overview && (
          <span class="facts">
            {overview.command} {overview.version}
            {overview.provider && `, provider ${overview.provider}`}
            {!reportAnswers() && (overview.mode === "act" ? ", writes" : ", observes, writes nothing")}
            {overview.isRestricted && ", only your namespaces"}
          </span>
        )}
        <Age live={live} />
        {token() && (
          <button type="button" onClick={() => enter(undefined)}>
            Forget the token
          </button>
        )}
      </div>
      <nav aria-label="Views">
        {VIEWS.filter(([view]) => !reportAnswers() || (view !== "route" && view !== "activity")).map(([view, title]) => (
          <a href={href(view)} aria-current={place.view === view ? "page" : undefined}>
            {title}
          </a>
        ))}
        {overview && (
          <span class="counts" role="group" aria-label="Names by health">
            {HEALTHS.filter((health) => overview.counts[health] > 0).map((health) => (
              <a href={href("names", undefined, { health })} title="Show only these names">
                <HealthMark health={health} count={overview.counts[health]} />
              </a>
            ))}
          </span>
        )}
      </nav>
    </header>
  );
}

function View({ live, place }: { live: Live; place: Place }) {
  switch (place.view) {
    case "name":
      return <NameView live={live} hostname={place.subject ?? ""} />;
    case "flow":
      return <FlowView live={live} query={place.query} />;
    case "plan":
      return <PlanView live={live} />;
    case "certificates":
      return <CertificatesView live={live} />;
    case "route":
      return <RouteView live={live} query={place.query} />;
    case "activity":
      return <ActivityView live={live} />;
    case "reason":
      return <ReasonView reason={place.subject ?? ""} />;
    default:
      return <NamesView live={live} query={place.query} />;
  }
}

function enter(text: string | undefined) {
  keepToken(text);
  location.reload();
}

/** Where the server wants to know who looks. */
function TokenForm() {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    enter(String(new FormData(event.currentTarget as HTMLFormElement).get("token") ?? "").trim());
  };
  return (
    <form class="token" onSubmit={submit}>
      <h1>Who are you?</h1>
      <p>The page shows the namespaces in which you may get HTTPRoutes. It needs a token of the cluster, such as</p>
      <pre>kubectl create token ACCOUNT -n NAMESPACE</pre>
      {token() && <p role="alert">The cluster does not know the token that was given, or it has expired.</p>}
      <label>
        <span>Token</span> <input name="token" type="password" required autocomplete="off" />
      </label>{" "}
      <button type="submit">Look</button>
      <p>It is kept for this tab alone, and sent to this server alone.</p>
    </form>
  );
}

function Page() {
  const live = useLive();
  const place = usePlace();
  useEffect(() => {
    document.title = `${place.subject ? `${place.subject} – ` : ""}Gatepost`;
  }, [place.subject]);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
      event.preventDefault();
      const search = document.querySelector<HTMLInputElement>("input[type=search]");
      search ? search.focus() : (location.hash = "#/names");
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  const notes = [...(live.overview?.troubles ?? []), ...(live.overview?.notes ?? [])];
  return (
    <div class={live.stale ? "stale" : ""}>
      <Head live={live} place={place} />
      <main>
        {notes.length > 0 && (
          <ul class="notes" aria-label="Notes">
            {notes.slice(0, 5).map((note) => (
              <li>{note}</li>
            ))}
          </ul>
        )}
        {live.needsToken && !live.overview ? <TokenForm /> : <View live={live} place={place} />}
      </main>
    </div>
  );
}

const root = document.getElementById("page");
if (root) {
  root.replaceChildren();
  render(<Page />, root);
}
