// Certificates by Secret: what is planned, what the Secret holds and until when, and how far an order is.
import { type Certificates, type Live, useAnswer } from "../api";
import { Expiry, Problem, Reason } from "../parts";

export function CertificatesView({ live }: { live: Live }) {
  const { data, error } = useAnswer<Certificates>("certificates", live.version);
  const items = [...(data?.items ?? [])].sort((a, b) => (a.notAfter ?? Infinity) - (b.notAfter ?? Infinity));
  return (
    <>
      <h1>Certificates</h1>
      <Problem error={error} />
      {data && items.length === 0 && <p>No listener names a Secret, and no certificate is planned.</p>}
      {items.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Secret</th>
              <th scope="col">Ends in</th>
              <th scope="col">Holds</th>
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
      )}
    </>
  );
}
