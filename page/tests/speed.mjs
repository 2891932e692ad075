// How fast the page is, for people who change it: `node page/tests/speed.mjs http://127.0.0.1:8053/`; with `dist` behind the
// address, the page of page/dist on the data of that server. Prints when the first rows were painted in a new tab, and the
// frames while the list scrolls. It asserts nothing: a machine that does other work gives other numbers.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [home = "http://127.0.0.1:8053/", own] = process.argv.slice(2);
const profile = mkdtempSync(join(tmpdir(), "gatepost-page-"));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
  viewport: { width: 1280, height: 800 },
});

if (own === "dist") {
  for (const file of ["page.js", "page.css"]) {
    const body = readFileSync(new URL(`../dist/${file}`, import.meta.url));
    const contentType = file.endsWith("js") ? "text/javascript" : "text/css";
    await browser.route(`**/${file}`, (route) => route.fulfill({ body, contentType }));
  }
}

/** Milliseconds from the begin of the navigation to the frame after the first row with a name. */
async function firstRows() {
  const page = await browser.newPage();
  await page.addInitScript(() => {
    const seen = new MutationObserver(() => {
      if (!document.querySelector(".rows tbody a[href^='#/name/']")) return;
      seen.disconnect();
      requestAnimationFrame(() => requestAnimationFrame(() => (window.painted = performance.now())));
    });
    seen.observe(document, { childList: true, subtree: true });
  });
  await page.goto(home);
  await page.waitForFunction(() => window.painted);
  const painted = await page.evaluate(() => window.painted);
  return { page, painted };
}

/** Scrolls for some seconds: by so many pixels a frame, or from the begin of the list to its end. */
async function frames(page, seconds, pixels) {
  const gaps = await page.evaluate(
    ([seconds, pixels]) =>
      new Promise((done) => {
        const box = document.querySelector(".rows");
        const all = box.scrollHeight - box.clientHeight;
        const gaps = [];
        let [began, last] = [undefined, undefined];
        const frame = (now) => {
          began ??= now;
          if (last !== undefined) gaps.push(now - last);
          last = now;
          const part = (now - began) / (seconds * 1000);
          if (part >= 1) return done(gaps);
          box.scrollTop = pixels ? (box.scrollTop + pixels) % all : all * part;
          requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
      }),
    [seconds, pixels],
  );
  gaps.sort((a, b) => a - b);
  const whole = gaps.reduce((sum, gap) => sum + gap, 0);
  const at = (share) => Math.round(gaps[Math.floor((gaps.length - 1) * share)]);
  return `${Math.round((gaps.length / whole) * 1000)} frames a second; between two: median ${at(0.5)} ms, 95 of 100 ${at(0.95)} ms, longest ${at(1)} ms`;
}

try {
  const times = [];
  for (let i = 0; i < 7; i++) {
    const { page, painted } = await firstRows();
    times.push(Math.round(painted));
    await page.close();
  }
  console.log(`first rows painted after, in ms: ${times.join(" ")}`);
  const { page } = await firstRows();
  console.log(await page.locator(".matching").innerText());
  console.log(`with a wheel, 60 pixels a frame: ${await frames(page, 5, 60)}`);
  console.log(`with the bar, all of it in 10 s: ${await frames(page, 10, 0)}`);
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
