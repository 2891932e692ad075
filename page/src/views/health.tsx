// Addresses that are probed: whether they answer, since when, and whether they are published.
import type { Probed } from "../api";

const MARKS: Record<string, string> = { Healthy: "✓", Unhealthy: "✗" };

export function AddressTable({ addresses }: { addresses: Probed[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Address</th>
          <th scope="col">Probes</th>
          <th scope="col">Since</th>
          <th scope="col">Published</th>
          <th scope="col">Why</th>
        </tr>
      </thead>
      <tbody>
        {addresses.map((one) => (
          <tr>
            <td>{one.address}</td>
            <td>
              <span class="state">
                {MARKS[one.state] ?? "?"} {one.state}
              </span>
            </td>
            <td>{one.since ? new Date(one.since).toLocaleString() : "not known"}</td>
            <td>{one.published ? "yes" : "no"}</td>
            <td>{one.error}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
