// What the last pass would write or wrote, what is held, and the word that confirms held deletes.
import { type Held, type Live, type Plan, type Step, useAnswer } from "../api";
import { NameLink, Problem, Reason, Section } from "../parts";

export function HeldTable({ held }: { held: Held[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Change</th>
          <th scope="col">Why it is held</th>
          <th scope="col">What to do</th>
        </tr>
      </thead>
      <tbody>
        {held.map((one) => (
          <tr>
            <td>{one.name ? <NameLink name={one.name} /> : `zone ${one.zone ?? "all"}`}</td>
            <td>
              {one.verb} {one.type} {one.old.join(", ")} {one.new.length > 0 && `→ ${one.new.join(", ")}`}
            </td>
            <td>
              {one.message} <Reason reason={one.reason} code={one.code} />
            </td>
            <td>{one.help}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Steps({ steps }: { steps: Step[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Change</th>
          <th scope="col">Name</th>
          <th scope="col">Stored</th>
          <th scope="col">Wanted</th>
          <th scope="col">Why</th>
          <th scope="col">Outcome</th>
        </tr>
      </thead>
      <tbody>
        {steps.map((step) => (
          <tr>
            <td>{step.verb}</td>
            <td>
              <NameLink name={step.name} /> {step.type} {step.provider && `at ${step.provider}`}
            </td>
            <td>{step.old?.join(", ")}</td>
            <td>{step.new?.join(", ")}</td>
            <td>{step.because}</td>
            <td>
              {step.outcome === "written" ? "✓ " : step.outcome === "failed" ? "✗ " : "– "}
              {step.outcome} {step.error}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function PlanView({ live }: { live: Live }) {
  const { data: plan, error } = useAnswer<Plan>("plan?limit=500", live.version);
  return (
    <>
      <h1>Plan</h1>
      <Problem error={error} />
      {plan && (
        <>
          {plan.confirmation && (
            <p class="problem">
              Deletes wait to be confirmed. The word for exactly these: <code>{plan.confirmation}</code>
            </p>
          )}
          {plan.unread.map((why) => (
            <Problem error={why} />
          ))}
          <Section title={`Held: ${plan.heldCount}`}>
            {plan.held.length > 0 ? <HeldTable held={plan.held} /> : <p>Nothing is held.</p>}
          </Section>
          <Section title={`Steps of the last pass: ${plan.stepCount}`}>
            {plan.steps.length > 0 ? <Steps steps={plan.steps} /> : <p>Nothing is to be written.</p>}
          </Section>
        </>
      )}
    </>
  );
}
