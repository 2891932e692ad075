// Certificates by Secret: what is planned, what the Secret holds and until when, which hostnames it is good for, and how far
// an order is.
import { type Certificates, type Live, type Served, useAnswer } from "../api";
import { Expiry, NameLink, Problem, Reason } from "../parts";

/** Hostnames that are told of one name of a certificate. */
const TOLD = 5;

/** Which hostnames each name of a certificate covers, and which none does. */
function Coverage({ served, count, isPlan }: { served: Served[]; count: number; isPlan: boolean }) {
  const groups = new Map<string, Served[]>();
  for (const one of served) {
    const key = one.coveredBy ?? (one.tooDeepFor ? `!${one.tooDeepFor}` : "!");
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  const verb = isPlan ? "would cover" : "covers";
  return (
    <>
      {[...groups].map(([key, all]) => (
        <p class={key.startsWith("!") ? "uncovered" : "covered"}>
          {key.startsWith("!") ? "✗ nothing " : "✓ "}
          {!key.startsWith("!") && <code>{key}</code>} {verb}{" "}
          {all.slice(0, TOLD).map((one, index) => (
            <>
              {index > 0 && ", "}
              {one.hostname === key ? "itself" : <NameLink name={one.hostname} />}
            </>
          ))}
          {all.length > TOLD && ` and ${all.length - TOLD} more`}
          {key.length > 1 && key.startsWith("!") && (
            <>
              : <code>{key.slice(1)}</code> is good for one label only
            </>
          )}
        </p>
      ))}
      {count > served.length && <p>and {count - served.length} hostnames more</p>}
    </>
  );
}

export function CertificatesView({ live }: { live: Live }) {
  const { data, error } = useAnswer<Certificates>("certificates", live.version);
  const items = [...(data?.items ?? [])].sort((a, b) => (a.notAfter ?? Infinity) - (b.notAfter ?? Infinity));
  return (
    <>
      <h1>Certificates</h1>
      <Problem error={error} />
      {data && items.length === 0 && <p>No listener names a Secret, and no certificate is planned.</p>}
      {items.length > 0 && (
        <div class="wide-table" role="region" aria-label="Certificates" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">Secret</th>
                <th scope="col">Ends in</th>
                <th scope="col">Holds</th>
                <th scope="col">Hostnames served with it</th>
                <th scope="col">Planned</th>
                <th scope="col">Order</th>
                <th scope="col">Listeners</th>
              </tr>
            </thead>
            <tbody>
              {items.map((item) => (
                <tr>
                  <td>{item.secret}</td>
                  <td>{item.notAfter ? <Expiry at={item.notAfter} /> : "no certificate"}</td>
                  <td>{item.unusable ?? item.held.join(", ")}</td>
                  <td>
                    {(item.held.length > 0 || item.planned) && (
                      <Coverage served={item.served} count={item.servedCount} isPlan={item.held.length === 0} />
                    )}
                  </td>
                  <td>
                    {item.planned?.dnsNames.join(", ") ?? "nothing"} {item.planned?.issuer && `by ${item.planned.issuer}`}
                  </td>
                  <td>
                    {item.issuing?.order && `${item.issuing.order.step} ${item.issuing.order.lastError ?? ""}`}
                    {item.issuing?.missing.map((one) => (
                      <p>
                        {one.hostname}: {one.message} <Reason reason={one.reason} />
                      </p>
                    ))}
                  </td>
                  <td>{item.listeners.join(", ")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
