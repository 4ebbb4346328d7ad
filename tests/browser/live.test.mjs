// The live page in a real browser: the program FEDLINK watches the finished sweep in FEDLINK_LIVE_FOLDER.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { poorContrasts } from "./contrast.mjs";

const folder = process.env.FEDLINK_LIVE_FOLDER;

let [browser, server, address] = [];
before(async () => {
  server = spawn(process.env.FEDLINK, ["watch", folder, "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  [address] = await new Promise((resolve) => createInterface({ input: server.stdout }).once("line", (line) => resolve([line])));
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync",
    ],
  });
});
after(async () => {
  await browser?.close();
  server?.kill("SIGINT");
});

/** Opens the page, and fails if it complained or asked for anything outside. */
async function open(options, check) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  // A busy machine is slow, not wrong.
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const [errors, requests] = [[], []];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(address);
  await page.waitForSelector("html[data-ready]");
  await check(page);
  assert.deepEqual(errors, []);
  assert.deepEqual(requests.filter((url) => !url.startsWith(address) && !url.startsWith("data:")), []);
  await context.close();
}

const report = () => {
  const [, json] = readFileSync(join(folder, "report.html"), "utf8").match(/<script type="application\/json" id="data">(.*?)<\/script>/s);
  return JSON.parse(json);
};

test("the page of a finished sweep shows its runs and the curves of its report", () => open({}, async (page) => {
  const { curves } = report();
  assert.equal(await page.locator("#tiles .tile dd").first().textContent(), "finished");
  const labels = await page.locator("#legend .name").allTextContents();
  assert.deepEqual(labels, curves.map((curve) => curve.label));
  assert.equal(await page.locator("#curves-chart g.series").count(), curves.length);
  const runs = curves.reduce((sum, curve) => sum + curve.seeds, 0);
  assert.equal(await page.locator("#runs-table tbody tr").count(), runs);
  const last = curves[0].accuracy.at(-1);
  const row = page.locator("#standing-table tbody tr", { hasText: curves[0].label }).first();
  assert.ok((await row.textContent()).includes(`${(100 * last).toFixed(2)}\u00a0%`), await row.textContent());
}));

test("the live chart draws the same paths as the report", () => open({}, async (page) => {
  const paths = (frame) => frame.locator("#curves-chart path.curve").evaluateAll((lines) => lines.map((line) => line.getAttribute("d")));
  const live = await paths(page);
  assert.ok(live.length > 0);
  const other = await page.context().browser().newPage({ viewport: { width: 1200, height: 900 } });
  await other.goto(`file://${join(folder, "report.html")}`);
  await other.waitForSelector("html[data-ready]");
  assert.deepEqual(live, await paths(other));
  await other.close();
}));

test("a curve that was hidden stays hidden while events arrive, and a new run appears", () => open({}, async (page) => {
  const { curves } = report();
  await page.locator('#legend input[data-curve="0"]').click();
  const before = await page.locator("#runs-table tbody tr").count();
  const label = `late <i>${Math.random()}</i>`;
  appendFileSync(join(folder, "events.jsonl"), `${JSON.stringify({
    time: Date.now() / 1000, process: "other-1", event: "planned", run: label, label, curve: curves[1].label, keys: curves[1].keys,
    policy: curves[1].policy, compressor: "d-sgd", seed: 77, rounds: 5, cost: 1,
  })}\n`);
  await page.locator("#runs-table tbody tr", { hasText: label }).waitFor();
  assert.equal(await page.locator("#runs-table tbody tr").count(), before + 1);
  assert.equal(await page.locator('#legend input[data-curve="0"]').isChecked(), false);
  assert.equal(await page.locator("#curves-chart g.series").count(), curves.length - 1);
}));

test("the page works by keyboard", () => open({}, async (page) => {
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.locator("#studies button").first().focus();
  await page.keyboard.press("Enter");
  assert.match(page.url(), /#study=0$/);
  await page.locator('#curves-chart > [tabindex="0"]').focus();
  await page.keyboard.press("ArrowRight");
  assert.ok(await page.locator("#curves-chart .readout").isVisible());
}));

for (const colorScheme of ["light", "dark"]) {
  test(`the page fits a phone and every text can be read, ${colorScheme}`, () =>
    open({ viewport: { width: 390, height: 844 }, colorScheme }, async (page) => {
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
      assert.deepEqual(await page.evaluate(poorContrasts), []);
    }));
}
