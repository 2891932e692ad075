// The page of a reason, as `gatepost explain REASON` prints it.
import { useAnswer } from "../api";
import { Problem } from "../parts";

export function ReasonView({ reason }: { reason: string }) {
  const { data, error } = useAnswer<{ name: string; code: string; page: string }>(`reasons/${encodeURIComponent(reason)}`, 0);
  return (
    <>
      <Problem error={error} />
      {data && <pre class="document">{data.page}</pre>}
    </>
  );
}
