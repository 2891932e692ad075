// One name: the chain from the class to the handshake with the broken link, its field and its fix; wanted and stored.
import { type Chain, type Link, type Live, type Name, useAnswer } from "../api";
import { ApiLink, Cause, Copy, Expiry, HealthMark, NameLink, Problem, Reason, Section } from "../parts";
import { AddressTable } from "./health";
import { Entries } from "./activity";
import { HeldTable, Steps } from "./plan";

const ROLES: Record<string, string> = {
  class: "Class",
  gateway: "Gateway",
  listenerSet: "ListenerSet",
  listener: "Listener",
  route: "Route",
  hostname: "Hostname",
  dns: "DNS",
  certificate: "Certificate",
};

/** The links of a chain, and behind them what the name gets. */
function linksOf(chain: Chain, name: Name): Link[] {
  const links = [...chain.links];
  const listener = chain.links.find((link) => link.role === "listener")?.name;
  const holds = chain.works && !chain.withheld;
  links.push({ role: "hostname", name: chain.intersected ?? name.hostname, holds: chain.intersected !== undefined });
  const sets = name.recordSets.map((set) => `${set.type} ${set.wanted.join(" ")}`);
  links.push({ role: "dns", name: holds && sets.length > 0 ? sets.join(", ") : "no record", holds: holds && sets.length > 0 });
  const walk = name.certificates?.find((one) => one.listener === listener);
  if (walk) links.push({ role: "certificate", name: walk.secret, detail: walk.held, holds: walk.covers === true });
  return links;
}

function ChainPicture({ chain, name }: { chain: Chain; name: Name }) {
  const links = linksOf(chain, name);
  const broken = links.findIndex((link) => !link.holds);
  return (
    <ol class="chain" aria-label={chain.works ? "A chain that works" : "A broken chain"}>
      {links.map((link, index) => (
        <li class={link.holds ? "holds" : index === broken ? "broken" : "after"}>
          <span class="role">{ROLES[link.role] ?? link.role}</span>
          <b>{link.name.replace(/^(GatewayClass|Gateway|ListenerSet|XListenerSet)\//, "")}</b>
          {link.detail && <span>{link.detail}</span>}
          <span class="state">{link.holds ? "✓ holds" : index === broken ? "✗ broken here" : "not reached"}</span>
        </li>
      ))}
    </ol>
  );
}

function RecordSets({ name, isStale }: { name: Name; isStale: boolean }) {
  if (name.recordSets.length === 0) return <p>No record is wanted or stored.</p>;
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Record set</th>
          <th scope="col">Wanted</th>
          <th scope="col">Stored</th>
          <th scope="col">State</th>
        </tr>
      </thead>
      <tbody>
        {name.recordSets.map((set) => {
          const isSame = set.stored !== null && [...set.stored].sort().join() === [...set.wanted].sort().join();
          const state = set.stored === null || isStale ? "? not known" : isSame ? "✓ the same" : "✗ differs";
          return (
            <tr>
              <td>
                {set.name} {set.type} {set.provider && `at ${set.provider}`}
              </td>
              <td>{set.wanted.join(", ") || "nothing"}</td>
              <td>{set.stored === null ? "not known" : set.stored.join(", ") || "nothing"}</td>
              <td>{state}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Requests({ name }: { name: Name }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Request</th>
          <th scope="col">Outcome</th>
          <th scope="col">Served by</th>
          <th scope="col">Listener</th>
        </tr>
      </thead>
      <tbody>
        {name.requests?.map((request) => (
          <tr>
            <td>{request.url}</td>
            <td>
              {request.fails ? "✗" : "✓"} {request.outcome} {request.status}
            </td>
            <td>{[request.route, request.backend ?? request.location].filter(Boolean).join(" → ")}</td>
            <td>{request.listener}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function CertificateRows({ name }: { name: Name }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Secret</th>
          <th scope="col">Listener</th>
          <th scope="col">Holds</th>
          <th scope="col">Ends in</th>
          <th scope="col">Wanted</th>
        </tr>
      </thead>
      <tbody>
        {name.certificates?.map((walk) => (
          <tr>
            <td>{walk.secret}</td>
            <td>{walk.listener}</td>
            <td>
              {walk.held}
              {walk.covers !== undefined && (walk.covers ? ", covers the name" : ", does not cover the name")}
            </td>
            <td>{walk.notAfter && <Expiry at={walk.notAfter} />}</td>
            <td>{walk.unwanted ?? "yes"}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Where no route asks for the name. */
function Unasked({ name }: { name: Name }) {
  return (
    <>
      {name.openListeners?.map((listener) => (
        <p>{listener} would serve it: attach a route with this hostname.</p>
      ))}
      {name.similar && (
        <p>
          Similar names in use:{" "}
          {name.similar.map((other) => (
            <>
              <NameLink name={other} />{" "}
            </>
          ))}
        </p>
      )}
    </>
  );
}

/** A name of others, of which only that may be seen. */
function HeldBy({ name }: { name: Name }) {
  return (
    <>
      <h1>{name.hostname}</h1>
      <p>
        {name.heldBy?.length ? `Held by namespace ${name.heldBy.join(", ")}` : "Not held by any of your routes"}. You may not
        get HTTPRoutes there, so nothing more of it is shown.
      </p>
    </>
  );
}

const VERDICTS: Record<string, string> = {
  works: "works",
  "requests-fail": "is published, but requests fail",
  "not-published": "is not published",
  "not-attached": "does not work: no route is attached",
  "not-asked": "does not work: no route asks for it",
};

export function NameView({ live, hostname }: { live: Live; hostname: string }) {
  const own = `names/${encodeURIComponent(hostname)}`;
  const { data: name, error } = useAnswer<Name>(own, live.version);
  if (!name) return error ? <Problem error={error} /> : <p>reading…</p>;
  if (name.heldBy) return <HeldBy name={name} />;
  const ways = [...name.chains].sort((a, b) => Number(a.works) - Number(b.works)).slice(0, 10);
  return (
    <>
      <p>
        <a href="#/names">Names</a>
      </p>
      <h1>{name.hostname}</h1>
      <p class="verdict">
        <HealthMark health={name.health} /> {VERDICTS[name.verdict] ?? name.verdict}
        {name.zone && `, zone ${name.zone}`}
      </p>
      <Problem error={error} />
      {name.cause && <Cause cause={name.cause} />}
      {name.otherNamespaces && name.otherNamespaces.length > 0 && (
        <p class="related">Routes of namespace {name.otherNamespaces.join(", ")} ask for it too; you may not see them.</p>
      )}
      {name.chains.length === 0 && <Unasked name={name} />}
      {ways.length > 0 && (
        <Section title={name.chains.length === 1 ? "Chain" : `${name.chains.length} chains`}>
          {ways.map((chain) => (
            <>
              <ChainPicture chain={chain} name={name} />
              {chain.broken && chain.broken.message !== name.cause?.message && <Cause cause={chain.broken} />}
              {chain.withheld && chain.withheld.message !== name.cause?.message && (
                <p class="related">
                  Not published here: {chain.withheld.message} <Reason reason={chain.withheld.reason} />
                </p>
              )}
            </>
          ))}
          {name.chains.length > ways.length && <p>… and {name.chains.length - ways.length} more; the JSON has all.</p>}
        </Section>
      )}
      <Section title="Records: wanted and stored">
        <RecordSets name={name} isStale={live.stale !== undefined} />
      </Section>
      {name.addresses && name.addresses.length > 0 && (
        <Section title="Health of its addresses">
          <AddressTable addresses={name.addresses} />
        </Section>
      )}
      {name.held.length > 0 && (
        <Section title="Held">
          <HeldTable held={name.held} />
        </Section>
      )}
      {name.steps.length > 0 && (
        <Section title="Steps of the last pass">
          <Steps steps={name.steps} />
        </Section>
      )}
      {name.requests && (
        <Section title="What a client meets">
          <Requests name={name} />
        </Section>
      )}
      {name.certificates && (
        <Section title="Certificates">
          <CertificateRows name={name} />
        </Section>
      )}
      {name.activity.length > 0 && (
        <Section title="Activity">
          <Entries entries={name.activity} />
        </Section>
      )}
      <p class="tools">
        <Copy text={`gatepost explain ${name.hostname}`} label="Copy as command" />{" "}
        <Copy text={location.href} label="Copy link" />{" "}
        <ApiLink path={own} file={`${name.hostname}.json`}>
          JSON
        </ApiLink>
        {name.chains.length > 0 && (
          <>
            <ApiLink path={`${own}/chain.svg`} file={`${name.hostname}.svg`}>
              SVG
            </ApiLink>
            <ApiLink path={`${own}/chain.mmd`} file={`${name.hostname}.mmd`}>
              Mermaid
            </ApiLink>
          </>
        )}
      </p>
    </>
  );
}
