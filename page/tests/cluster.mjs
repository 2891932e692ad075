// The page of a controller with `--page cluster` in a real browser: a tenant gives a token and sees their own names, of others
// only that they are held, and a change in the cluster without a reload.
// Arguments: a JSON object with `home` (the URL of the page), `token` (of the tenant), `own` (the hostnames that they see),
// `held` (a hostname of another namespace), `holder` (that namespace), `hidden` (a word that must not be shown) and `fresh`
// (a hostname that appears once this program has printed `waiting` on a line).
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const { home, token, own, held, holder, hidden, fresh } = JSON.parse(process.argv[2]);
const profile = mkdtempSync(join(tmpdir(), "gatepost-page-"));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"],
  viewport: { width: 1280, height: 800 },
});
const page = await browser.newPage();
page.setDefaultTimeout(60_000);
const errors = [];
page.on("pageerror", (error) => errors.push(String(error)));

const shows = (text) => page.getByText(text).locator("visible=true").first().waitFor();
const body = () => page.locator("body").innerText();

async function run() {
  await page.goto(`${home}#/names`);
  await shows("Who are you?");
  assert.ok(!(await body()).includes(own[0]), "names are shown without a token");
  await page.locator("input[name=token]").fill(`${token}x`);
  await page.getByRole("button", { name: "Look" }).click();
  await shows("does not know the token that was given");
  await page.locator("input[name=token]").fill(token);
  await page.getByRole("button", { name: "Look" }).click();
  await shows(`${own.length} of ${own.length} names`);
  const names = page.locator(".rows tbody a[href^='#/name/']");
  assert.deepEqual((await names.allInnerTexts()).sort(), [...own].sort());
  await shows("only your namespaces");

  const views = {
    names: ".rows tbody a",
    flow: ".flow .node",
    plan: "text=Steps of the last pass",
    certificates: "text=apple/shared-tls",
    activity: ".activity li",
  };
  for (const [view, part] of Object.entries(views)) {
    await page.goto(`${home}#/${view}`);
    await page.locator(part).first().waitFor();
    assert.ok(!(await body()).includes(hidden), `${view} shows ${hidden}: ${await body()}`);
  }
  await page.goto(`${home}#/name/${held}`);
  await shows(`Held by namespace ${holder}`);
  assert.equal(await page.locator(".chain").count(), 0);

  await page.goto(`${home}#/names`);
  await shows(`${own.length} of ${own.length} names`);
  await page.evaluate(() => (window.isSamePage = true));
  console.log("waiting");
  await page.getByRole("link", { name: fresh, exact: true }).waitFor();
  assert.equal(await page.evaluate(() => window.isSamePage), true, "the page was loaded again");
  assert.deepEqual(errors, []);
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
