// The page in a real browser, on a server that runs: every view, live changes, a stopped server, texts with scripts.
// Arguments: a JSON object with `address`, `folder` (the files that the server watches), `pid` (of the server) and, to keep
// pictures, `pictures` (a directory); `report` is a report about the same files.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axe = createRequire(import.meta.url)("axe-core");
const { address, folder, pid, pictures, report } = JSON.parse(process.argv[2]);
const home = `http://${address}/`;
const profile = mkdtempSync(join(tmpdir(), "gatepost-page-"));
const quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  args: ["--no-sandbox", ...quiet],
  viewport: { width: 1280, height: 800 },
});
const page = await browser.newPage();
page.setDefaultTimeout(20_000);
const errors = [];
page.on("pageerror", (error) => errors.push(String(error)));
page.on("console", (message) => message.type() === "error" && errors.push(message.text()));

const body = () => page.locator("body").innerText();
const shows = (text) => page.getByText(text).locator("visible=true").first().waitFor();
const picture = async (name) => {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
};

async function step(title, test) {
  await test();
  // A name that is no hostname is answered with 400, which the console tells.
  assert.deepEqual(errors.filter((error) => !error.includes("400 (Bad Request)")), [], title);
  console.log(`ok: ${title}`);
}

/** What somebody with a screen reader, without colours or with a keyboard would miss; in both schemes. */
async function isAccessible(title) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).slice(0, 3).join(" ")}`);
    assert.deepEqual(told, [], `${title}, ${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

async function inDarkAndOnPhone(name) {
  if (!pictures) return;
  await page.emulateMedia({ colorScheme: "dark" });
  await picture(`${name}-dark`);
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 390, height: 800 });
  await picture(`${name}-phone`);
  await page.setViewportSize({ width: 1280, height: 800 });
}

async function run() {
  await step("the names are in a table with their health", async () => {
    await page.goto(home);
    await shows("5 of 5 names");
    assert.equal(await page.locator(".rows tbody a[href^='#/name/']").count(), 5);
    await page.locator("header .age", { hasText: /as of \d+ s ago/ }).waitFor();
    assert.match(await page.locator("header .counts").innerText(), /Wrong 1[\s\S]*Right 4/);
    await isAccessible("names");
    await picture("names");
    await inDarkAndOnPhone("names");
  });

  await step("the planted mistake is two clicks away from the overview, with its field and its fix", async () => {
    await page.locator("header .counts a").first().click();
    await shows("1 of 5 names");
    await page.getByRole("link", { name: "blog.example.org" }).click();
    await shows("kubectl label namespace blog expose=public");
    const text = await body();
    for (const part of ["HTTPRoute/blog/pages", "spec.parentRefs[0]", "broken here", "namespace-not-allowed"]) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
    assert.equal(await page.locator(".chain .broken .role").innerText(), "Route");
    await isAccessible("name");
    await picture("name");
    await inDarkAndOnPhone("name");
  });

  await step("a link opened afresh shows the same", async () => {
    const before = await page.locator("main").innerText();
    const other = await browser.newPage();
    await other.goto(page.url());
    await other.getByText("kubectl label namespace blog").waitFor();
    assert.equal(await other.locator("main").innerText(), before);
    await other.close();
  });

  await step("a name that works has its chain, and what is stored is what is wanted", async () => {
    await page.goto(`${home}#/name/www.example.org`);
    await shows("What a client meets");
    assert.equal(await page.locator(".chain .broken").count(), 0);
    assert.ok((await page.getByText("the same").count()) >= 2);
  });

  await step("filters are in the URL, and the search takes an object", async () => {
    await page.goto(`${home}#/names?q=TLSRoute/shop`);
    await shows("1 of 5 names");
    await page.keyboard.press("/");
    await page.locator("input[type=search]").fill("GP0204");
    await page.getByRole("link", { name: "blog.example.org" }).waitFor();
    assert.match(page.url(), /q=GP0204/);
  });

  await step("the graph shows what is broken, and the way through a node", async () => {
    await page.goto(`${home}#/flow`);
    await page.locator(".flow .node").first().waitFor();
    assert.equal(await page.locator(".flow .edge.not-permitted").count(), 1);
    await isAccessible("flow");
    await picture("flow");
    await inDarkAndOnPhone("flow");
    // By keyboard: a node is a link.
    await page.getByRole("link", { name: /HTTPRoute blog\/pages, broken/ }).focus();
    await page.keyboard.press("Enter");
    await shows("← Gateway/infra/edge/http: not permitted");
    assert.match(page.url(), /node=HTTPRoute%2Fblog%2Fpages/);
    assert.ok((await page.locator(".flow .node.faded").count()) > 0);
    await page.getByRole("button", { name: /Only what is broken/ }).click();
    assert.equal(await page.locator(".flow .node", { hasText: "shop/web" }).count(), 0);
  });

  await step("nothing is lost when it is enlarged or moves less", async () => {
    await page.emulateMedia({ reducedMotion: "reduce" });
    // 400 % of a window of 1280 pixels leaves room for 320.
    await page.setViewportSize({ width: 320, height: 640 });
    for (const view of ["names", "name/blog.example.org", "plan", "certificates", "route", "activity", "flow"]) {
      await page.goto(`${home}#/${view}`);
      await page.locator("main h1").waitFor();
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wider <= 0, `${view} is ${wider} pixels too wide`);
    }
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.emulateMedia({ reducedMotion: "no-preference" });
  });

  await step("a report shows the same without a server", async () => {
    await page.goto(`file://${report}`);
    await shows("5 of 5 names");
    await page.locator("header .counts a").first().click();
    await shows("1 of 5 names");
    await page.getByRole("link", { name: "blog.example.org" }).click();
    await shows("kubectl label namespace blog expose=public");
    await isAccessible("report");
    await page.getByRole("link", { name: "Flow" }).click();
    await page.locator(".flow .node").first().waitFor();
    await page.locator("a[href^='#/reason/']").first().waitFor({ state: "attached" }).catch(() => undefined);
    await page.goto(`file://${report}#/reason/namespace-not-allowed`);
    await shows("What to do");
  });

  await step("where a token is needed the page asks for one, sends it with everything, and forgets it", async () => {
    const lacking = [];
    await page.route("**/api/v1/**", async (route) => {
      if (route.request().headers().authorization === "Bearer good") return route.continue();
      lacking.push(route.request().url());
      return route.fulfill({ status: 401, json: { error: "a token of the cluster is needed" } });
    });
    const held = { generation: 1, asOf: 1, hostname: "other.example.org", heldBy: ["blog"] };
    await page.route("**/api/v1/names/other.example.org", (route) => route.fulfill({ json: held }));
    await page.goto("about:blank");
    await page.goto(`${home}#/names`);
    await shows("Who are you?");
    await isAccessible("token");
    await picture("token");
    await page.locator("input[name=token]").fill("bad");
    await page.getByRole("button", { name: "Look" }).click();
    await shows("does not know the token that was given");
    lacking.length = 0;
    await page.locator("input[name=token]").fill("good");
    await page.getByRole("button", { name: "Look" }).click();
    await shows("5 of 5 names");
    assert.deepEqual(lacking.filter((url) => !url.includes("events")).slice(0, 3), []);
    await page.goto(`${home}#/name/other.example.org`);
    await shows("Held by namespace blog");
    await page.getByRole("button", { name: "Forget the token" }).click();
    await shows("Who are you?");
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.goto("about:blank");
    errors.length = 0; // Requests that are refused are told on the console.
  });

  await step("a request is routed as the form asks", async () => {
    await page.goto(`${home}#/names`);
    await page.getByRole("link", { name: "Route a request" }).click();
    await page.locator("input[name=url]").fill("http://www.example.org/cart");
    // The page is drawn anew when its clock moves on, and what was typed stays.
    const age = await page.locator("header .age").innerText();
    await page.waitForFunction((before) => document.querySelector("header .age").textContent !== before, age);
    await page.getByRole("button", { name: "Who serves it?" }).click();
    await shows("shop/cart:8080");
    await shows("path prefix `/cart`");
    await isAccessible("route");
    await picture("route");
    await inDarkAndOnPhone("route");
  });

  await step("plan, certificates, activity and reasons are there", async () => {
    await page.getByRole("link", { name: "Plan" }).click();
    await shows("Steps of the last pass");
    await isAccessible("plan");
    await picture("plan");
    await inDarkAndOnPhone("plan");
    await page.getByRole("link", { name: "Certificates" }).click();
    await shows("No listener names a Secret");
    await isAccessible("certificates");
    await page.getByRole("link", { name: "Activity" }).click();
    await shows("because HTTPRoute/shop/web asks for it");
    await isAccessible("activity");
    await picture("activity");
    await inDarkAndOnPhone("activity");
    await page.goto(`${home}#/reason/namespace-not-allowed`);
    await shows("What to do");
  });

  await step("an edited file shows without a reload", async () => {
    await page.goto(`${home}#/names`);
    await shows("5 of 5 names");
    const route = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: fresh}
spec: {parentRefs: [{name: edge, namespace: infra}], hostnames: [fresh.example.org], rules: [{backendRefs: [{name: web, port: 8080}]}]}
`;
    writeFileSync(join(folder, "fresh.yaml"), route);
    await page.getByRole("link", { name: "fresh.example.org" }).waitFor();
  });

  await step("a certificate tells which hostnames its wildcard covers, and which are too deep for it", async () => {
    await page.goto(`${home}#/certificates`);
    // The example without its policy, which probes addresses outside of this machine.
    const example = readFileSync(new URL("../../examples/page/gallery.yaml", import.meta.url), "utf8");
    writeFileSync(join(folder, "gallery.yaml"), example.split("\n---\n").filter((one) => !one.includes("DNSPolicy")).join("\n---\n"));
    await page.locator("tr", { hasText: "gallery/gallery-tls" }).waitFor();
    assert.deepEqual(await page.locator(".uncovered, .covered").allInnerTexts(), [
      "✗ nothing covers roof.east.gallery.example.net: *.gallery.example.net is good for one label only",
      "✓ *.gallery.example.net covers itself, east.gallery.example.net",
    ]);
    await isAccessible("certificates");
    await picture("certificates");
    await inDarkAndOnPhone("certificates");
    unlinkSync(join(folder, "gallery.yaml"));
    await shows("No listener names a Secret");
  });

  await step("texts with scripts stay text", async () => {
    const script = `<img src="x" onerror="window.hit=1"><script>window.hit=1</script>`;
    const spoil = (value) =>
      typeof value === "string" ? value + script : Array.isArray(value) ? value.map(spoil)
      : value && typeof value === "object" ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, k === "health" ? v : spoil(v)])) : value;
    // A request that the page has given up in the meantime needs no answer.
    const answer = async (route) => {
      const own = await route.fetch();
      await route.fulfill({ response: own, json: spoil(await own.json()) });
    };
    await page.route("**/api/v1/{names,plan,activity}**", (route) => answer(route).catch(() => undefined));
    for (const view of ["names", "name/blog.example.org", "plan", "activity"]) {
      await page.goto("about:blank");
      await page.goto(`${home}#/${view}`);
      await shows("window.hit=1");
    }
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.goto(`${home}#/name/${encodeURIComponent(script)}`);
    assert.equal(await page.locator("img").count(), 0);
    assert.equal(await page.evaluate("window.hit"), undefined);
  });

  /** Whether every mark of a part of the page is grey. */
  const isGrey = (part = "body") =>
    page.evaluate((part) => {
      const marks = [...document.querySelector(part).querySelectorAll(".health, .chain .state")];
      const colours = new Set(marks.map((mark) => getComputedStyle(mark).color));
      const probe = Object.assign(document.createElement("span"), { className: "unknown" });
      document.body.append(probe);
      const grey = getComputedStyle(probe).color;
      probe.remove();
      return marks.length > 0 && colours.size === 1 && colours.has(grey);
    }, part);
  const fails = (route) => route.fulfill({ status: 500, json: { error: "broken on purpose" } }).catch(() => undefined);

  await step("a broken API makes everything grey, in a page that is open and in a new one", async () => {
    await page.goto(`${home}#/names`);
    await shows("6 of 6 names");
    assert.equal(await isGrey(), false);
    await page.route("**/api/v1/**", fails);
    // A change makes the page ask again.
    renameSync(join(folder, "fresh.yaml"), join(folder, "fresh2.yaml"));
    await page.getByText("not current: broken on purpose").waitFor();
    assert.ok(await isGrey());
    assert.match(await page.locator(".rows").innerText(), /www\.example\.org/);
    await page.goto("about:blank");
    await page.goto(`${home}#/names`);
    await page.locator(".stale main [role=alert]", { hasText: "broken on purpose" }).waitFor();
    assert.ok(await isGrey());
    assert.ok(!(await body()).includes("www.example.org"));
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.locator(".stale").waitFor({ state: "detached" });
    errors.length = 0; // Requests that fail are told on the console.
  });

  await step("a view that cannot be read anew is grey, also where the rest can", async () => {
    for (const [view, answer] of [["names", "names?*"], ["name/www.example.org", "names/www.example.org"]]) {
      await page.goto(`${home}#/${view}`);
      await page.locator("main .health").first().waitFor();
      await page.locator("main .unread").waitFor({ state: "detached" });
      assert.equal(await isGrey("main"), false, view);
      await page.route(`**/api/v1/${answer}`, fails);
      const [from, to] = view === "names" ? ["fresh2.yaml", "fresh.yaml"] : ["fresh.yaml", "fresh2.yaml"];
      renameSync(join(folder, from), join(folder, to));
      await page.locator("main .unread", { hasText: "broken on purpose" }).waitFor();
      assert.ok(await isGrey("main"), view);
      await page.unrouteAll({ behavior: "ignoreErrors" });
    }
    errors.length = 0; // Requests that fail are told on the console.
  });

  await step("files that cannot be read make everything grey", async () => {
    await page.goto(`${home}#/names`);
    await shows("6 of 6 names");
    assert.equal(await isGrey(), false);
    renameSync(folder, `${folder}.away`);
    await page.locator(".stale").waitFor();
    assert.ok(await isGrey());
    assert.match(await page.locator("header").innerText(), /not current/);
    renameSync(`${folder}.away`, folder);
  });

  await step("a server that is gone makes everything grey", async () => {
    process.kill(pid, "SIGKILL");
    await page.getByText("not current: the server does not answer").waitFor();
    assert.ok(await isGrey());
    assert.match(await page.locator(".rows").innerText(), /www\.example\.org/);
    await picture("stale");
    errors.length = 0; // Requests that fail are told on the console.
  });
}

try {
  await run();
} catch (error) {
  console.error(error, errors, await body().catch(() => ""));
  process.exitCode = 1;
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
