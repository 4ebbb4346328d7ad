// The report in a real browser: every page in FEDLINK_PAGES is checked against the data that it carries itself.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { poorContrasts } from "./contrast.mjs";

const folder = resolve(process.env.FEDLINK_PAGES);
const pages = readdirSync(folder).filter((name) => name.endsWith(".html")).sort();
assert.ok(pages.length > 0, `no page in ${folder}`);

let browser;
before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync",
    ],
  });
});
after(() => browser?.close());

/** Opens a page, hands it and its data to `check`, and fails if it complained or asked for anything outside. */
async function open(name, options, check = () => {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  // A busy machine is slow, not wrong.
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const [errors, requests] = [[], []];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  const address = pathToFileURL(join(folder, name)).href;
  await page.goto(address);
  const title = await page.title();
  if (options.javaScriptEnabled !== false) await page.waitForSelector("html[data-ready]");
  await check(page, context, errors);
  assert.equal(await page.title(), title);
  assert.deepEqual(errors, []);
  assert.deepEqual(requests.filter((url) => url !== address && !url.startsWith("data:")), []);
  await context.close();
}

/** The data that a page carries. */
function dataOf(name) {
  const [, json] = readFileSync(join(folder, name), "utf8").match(/<script type="application\/json" id="data">(.*?)<\/script>/s);
  return JSON.parse(json);
}

const seriesOf = (page, chart) =>
  page.locator(`#${chart} g.series`).evaluateAll((groups) => groups.map((group) => Number(group.dataset.curve)));
const label = (page, chart, axis) => page.locator(`#${chart} .${axis}-label`).textContent();
const holder = (page, chart) => page.locator(`#${chart} > [tabindex="0"]`);
const number = (text) => Number(text.replace("\u2212", "-").replace(/[^0-9.e+-]/g, ""));
/** Whether a shown percentage is the share, rounded to two decimals. */
const shows = (text, share) => Math.abs(number(text) - 100 * share) <= 0.005 + 1e-9;

for (const name of pages) {
  describe(name, () => {
    const data = dataOf(name);
    // A page without curves has no charts of them.
    const ofCurves = data.curves.length ? test : () => {};
    const all = data.curves.map((_, i) => i);

    test("the page loads without an error and requests nothing", () => open(name, {}));

    test("the page's own policy forbids it the network", () => open(name, {}, async (page, _, errors) => {
      const answer = await page.evaluate(() => fetch("http://127.0.0.1:9/").then(() => "answered", () => "refused"));
      assert.equal(answer, "refused");
      assert.ok(errors.some((text) => text.includes("Content Security Policy")), String(errors));
      errors.length = 0;
    }));

    ofCurves("a curve is hidden and shown again by mouse and keyboard, everything else staying", () => open(name, {}, async (page) => {
      assert.deepEqual(await seriesOf(page, "curves-chart"), all);
      const last = data.curves.length - 1;
      const box = page.locator(`#legend input[data-curve="${last}"]`);
      await box.click();
      for (const chart of ["curves-chart", "q-chart", "bits-chart"]) {
        assert.deepEqual(await seriesOf(page, chart), all.slice(0, -1), chart);
      }
      await box.focus();
      await page.keyboard.press("Space");
      assert.deepEqual(await seriesOf(page, "curves-chart"), all);
      await page.locator("#show-none").press("Enter");
      assert.deepEqual(await seriesOf(page, "curves-chart"), []);
      await page.locator("#show-all").press("Enter");
      assert.deepEqual(await seriesOf(page, "curves-chart"), all);
    }));

    ofCurves("a button for each value of a swept key shows the curves that have it", () => open(name, {}, async (page) => {
      const values = new Map();
      for (const [key, value] of data.curves.flatMap((curve) => curve.keys)) {
        values.set(key, (values.get(key) || new Set()).add(value));
      }
      const distinguishing = [...values].filter(([, found]) => found.size > 1);
      const groups = distinguishing.length > 1 ? distinguishing.map(([key, found]) => [key, [...found]]) : [];
      assert.equal(await page.locator("#show-only button").count(), groups.flatMap(([, found]) => found).length);
      for (const [key, found] of groups) {
        const value = found.at(-1);
        const group = page.locator(`#show-only [aria-label="Only curves of one ${key}"]`);
        await group.getByText(value, { exact: true }).press("Enter");
        const has = (i) => data.curves[i].keys.some(([name, given]) => name === key && given === value);
        assert.deepEqual(await seriesOf(page, "curves-chart"), all.filter(has));
        assert.deepEqual(await page.locator("#legend input:checked").evaluateAll((boxes) => boxes.map((box) => Number(box.dataset.curve))), all.filter(has));
      }
    }));

    ofCurves("bands are drawn for few curves, or as was chosen", () => open(name, {}, async (page) => {
      const bands = () => page.locator("#curves-chart .band").count();
      const box = page.locator("#bands");
      if (!data.curves.some((curve) => curve.seeds > 1)) return assert.equal(await bands(), 0);
      const few = data.curves.length <= 12;
      assert.deepEqual([await bands() > 0, await box.isChecked()], [few, few]);
      await page.locator("#show-none").click();
      await page.locator('#legend input[data-curve="0"]').check();
      assert.deepEqual([await bands() > 0, await box.isChecked()], [true, true]);
      await box.focus();
      await page.keyboard.press("Space");
      assert.equal(await bands(), 0);
      await page.keyboard.press("Space");
      await page.locator("#show-all").click();
      assert.ok(await bands() > 0);
    }));

    ofCurves("seconds and joules can be chosen as the axis where a curve has them, and only there", () => open(name, {}, async (page) => {
      const priced = all.filter((i) => data.curves[i].seconds.length);
      const axes = page.locator('input[name="x"]');
      assert.deepEqual(await axes.evaluateAll((inputs) => inputs.map((input) => input.value)),
        ["rounds", "bits", "symbols", ...(priced.length ? ["seconds", "joules"] : [])]);
      for (const id of ["costs", "costs-table"]) assert.equal(await page.locator(`#${id}`).count(), priced.length ? 1 : 0, id);
      if (!priced.length) return;
      for (const axis of ["seconds", "joules"]) {
        await page.locator(`input[name="x"][value="${axis}"]`).check();
        for (const chart of ["curves-chart", "q-chart"]) assert.match(await label(page, chart, "x"), new RegExp(`^${axis}`));
        const drawn = await page.locator("#curves-chart g.series").evaluateAll((groups) =>
          groups.filter((group) => group.querySelector("path.curve")).map((group) => Number(group.dataset.curve)));
        assert.deepEqual(drawn, priced);
        const end = Math.max(...priced.map((i) => data.curves[i][axis].at(-1)));
        const [, to] = (await page.locator("#zoom-range").textContent()).match(/ to (.*)$/);
        assert.ok(Math.abs(number(to) - end) <= 1e-4 * end, `${to} against ${end}`);
      }
      await page.locator("#costs-table thead button").nth(3).click();
      const seconds = await page.locator("#costs-table tbody tr td:nth-child(4)").evaluateAll((cells) => cells.map((cell) => cell.dataset.value));
      const known = seconds.filter((value) => value !== "").map(Number);
      assert.deepEqual(known, [...known].sort((a, b) => b - a));
      assert.equal(known.length, priced.length);
    }));

    test("every drawing of the costs and the cell has a name and fits the page", () => open(name, {}, async (page) => {
      for (const details of await page.locator("#costs details, #cell details").all()) await details.locator("summary").click();
      for (const drawing of await page.locator("#costs svg[role=img], #cell svg[role=img]").all()) {
        assert.ok((await drawing.getAttribute("aria-label")).length > 5);
        const [box, around] = [await drawing.boundingBox(), await page.locator("#main").boundingBox()];
        assert.ok(box.width > 300 && box.x >= around.x && box.x + box.width <= around.x + around.width + 1, JSON.stringify(box));
      }
    }));

    ofCurves("the axes are chosen by mouse and keyboard", () => open(name, {}, async (page) => {
      assert.equal(await label(page, "curves-chart", "x"), "round");
      await page.locator('input[name="x"][value="bits"]').check();
      assert.match(await label(page, "curves-chart", "x"), /^bits/);
      assert.match(await label(page, "q-chart", "x"), /^bits/);
      await page.keyboard.press("ArrowRight");
      assert.match(await label(page, "curves-chart", "x"), /^channel symbols/);
      assert.match(await label(page, "curves-chart", "y"), /accuracy/);
      await page.locator('input[name="y"][value="accuracy"]').focus();
      await page.keyboard.press("ArrowRight");
      assert.match(await label(page, "curves-chart", "y"), /loss/);
    }));

    ofCurves("arrow keys and mouse read the embedded values", () => open(name, {}, async (page) => {
      await holder(page, "curves-chart").focus();
      await page.keyboard.press("End");
      const readout = page.locator("#curves-chart .readout");
      const last = Math.max(...data.curves.flatMap((curve) => curve.rounds));
      const rows = () => readout.locator("tr").evaluateAll((found) => found.map((row) => [...row.cells].map((cell) => cell.textContent)));
      const compare = async (round) => {
        assert.equal(await readout.locator("b").textContent(), `round: ${round}`);
        const shown = await rows();
        assert.ok(shown.length > 0);
        for (const [text, value] of shown) {
          const same = data.curves.filter((curve) => curve.label === text);
          const found = same.some((curve) => shows(value.split("[")[0], curve.accuracy[curve.rounds.indexOf(round)]));
          assert.ok(found, `${text}: ${value}`);
        }
        const values = shown.map(([, value]) => number(value.split("[")[0]));
        assert.deepEqual(values, [...values].sort((a, b) => b - a));
      };
      await compare(last);
      const rounds = [...new Set(data.curves.flatMap((curve) => curve.rounds))].sort((a, b) => a - b);
      await page.keyboard.press("ArrowLeft");
      await compare(rounds.at(-2));
      assert.match(await page.locator("#curves-chart [aria-live]").textContent(), new RegExp(`^round: ${rounds.at(-2)};`));
      await page.keyboard.press("Home");
      await compare(rounds[0]);
      await page.keyboard.press("Escape");
      assert.ok(await readout.isHidden());
      const box = await page.locator("#curves-chart .plot").boundingBox();
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      await compare(rounds.reduce((best, x) => (Math.abs(x - last / 2) < Math.abs(best - last / 2) ? x : best)));
    }));

    ofCurves("dragging, sliders and keys zoom, and the button resets", () => open(name, {}, async (page) => {
      const range = async () => (await page.locator("#zoom-range").textContent()).match(/[\d.]+/g).map(Number);
      const whole = await range();
      const reset = page.locator("#zoom-reset");
      assert.ok(await reset.isDisabled());
      const box = await page.locator("#curves-chart .plot").boundingBox();
      await page.mouse.move(box.x + box.width * 0.25, box.y + 50);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * 0.75, box.y + 60, { steps: 4 });
      await page.mouse.up();
      const near = (found, wanted) => assert.ok(found.every((x, i) => Math.abs(x - wanted[i] * whole[1]) <= 0.01 * whole[1]), `${found}`);
      near(await range(), [0.25, 0.75]);
      await reset.click();
      assert.deepEqual(await range(), whole);
      await page.locator("#zoom-from").focus();
      for (let i = 0; i < 20; i += 1) await page.keyboard.press("ArrowRight");
      near(await range(), [0.1, 1]);
      await holder(page, "curves-chart").focus();
      await page.keyboard.press("0");
      assert.deepEqual(await range(), whole);
      await page.keyboard.press("+");
      near(await range(), [0.25, 0.75]);
      await page.keyboard.press("-");
      assert.deepEqual(await range(), whole);
    }));

    test("the results table shows the embedded numbers and sorts by them", () => open(name, {}, async (page) => {
      const read = () => page.locator("#results-table tbody tr").evaluateAll((rows) => rows.map((row) => ({
        curve: Number(row.dataset.curve), cells: [...row.cells].map((cell) => cell.textContent.trim()),
      })));
      const rows = await read();
      assert.deepEqual(rows.map((row) => row.curve), all);
      const headings = await page.locator("#results-table thead th").allTextContents();
      const place = headings.findIndex((text) => text.trim().startsWith("Rounds to"));
      for (const { curve, cells } of rows) {
        const expected = data.curves[curve];
        for (const [column, interval] of [[1, expected.final_accuracy], [3, expected.best_accuracy]]) {
          if (interval.mean === null) {
            assert.equal(cells[column], "–");
            continue;
          }
          const [mean, low, high] = cells[column].split(/[[,]/);
          assert.ok(shows(mean, interval.mean), cells[column]);
          if (interval.low < interval.high) assert.ok(shows(low, interval.low) && shows(high, interval.high), cells[column]);
          else assert.equal(low, undefined);
        }
        // "26 [20, 30]", "25 (3/4)", or "> 40 (0/7)" where the median lies beyond.
        const [rounds, cell] = [expected.rounds_to_target, cells[place]];
        if (rounds) {
          assert.equal(cell.startsWith(">"), rounds.value === null, cell);
          const shown = number(cell.split(/[([]/)[0]);
          assert.ok(Math.abs(shown - (rounds.value ?? rounds.beyond)) <= 0.05 + 1e-9, cell);
          assert.equal(cell.includes(`(${rounds.reached}/${rounds.of})`), rounds.reached < rounds.of, cell);
        } else assert.equal(cell, "–");
        assert.equal(cells.at(-1), expected.status);
      }
      if (rows.length < 2) return;
      await page.locator("#results-table th button").nth(1).press("Enter");
      const finals = (await read()).map((row) => data.curves[row.curve].final_accuracy.mean ?? -Infinity);
      assert.deepEqual(finals, [...finals].sort((a, b) => b - a));
      assert.equal(await page.locator("#results-table th[aria-sort]").getAttribute("aria-sort"), "descending");
    }));

    const summary = join(folder, name.replace(/html$/, "summary.json"));
    if (existsSync(summary)) {
      test("the results table shows the numbers of summary.json", () => open(name, {}, async (page) => {
        const finals = await page.locator("#results-table tbody tr td:nth-child(2)").allTextContents();
        const expected = JSON.parse(readFileSync(summary, "utf8"));
        assert.equal(finals.length, expected.length);
        finals.forEach((text, i) => assert.ok(shows(text.split("[")[0], expected[i].final_accuracy), text));
      }));
    }

    test("the difference matrix shows every pair both ways and marks what excludes zero", () => open(name, {}, async (page) => {
      const cells = await page.locator("#differences-table td[data-value]").allTextContents();
      assert.equal(cells.length, 2 * data.differences.length);
      const count = (mark) => cells.filter((cell) => cell.includes(mark)).length;
      const decided = data.differences.filter(({ difference: { low, high } }) => low < high && (low > 0 || high < 0)).length;
      assert.equal(count("▲"), decided);
      assert.equal(count("▼"), decided);
    }));

    ofCurves("bars show who was scheduled, and few enough of them", () => open(name, {}, async (page) => {
      const last = data.curves.length - 1;
      await page.locator("#device-curve").selectOption(String(last));
      const { scheduled, fair_share: fair } = data.curves[last];
      const heights = await page.locator("#share-chart .bar").evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute("height"))));
      assert.ok(heights.length > 0 && heights.length <= 400);
      assert.ok(shows((await page.locator("#share-chart .reference-label").textContent()).split("=")[1], fair));
      if (heights.length === scheduled.length) {
        const [unit, max] = [Math.max(...heights), Math.max(...scheduled)];
        heights.forEach((height, device) => assert.ok(Math.abs(height / unit - scheduled[device] / max) < 1e-6));
        await page.locator("#device-order").selectOption("share");
        const ordered = await page.locator("#share-chart .bar").evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute("height"))));
        assert.deepEqual(ordered, [...heights].sort((a, b) => b - a));
      }
      await holder(page, "power-chart").focus();
      await page.keyboard.press("ArrowRight");
      assert.match(await page.locator("#power-chart .readout").textContent(), /device|rank/);
    }));

    ofCurves("a finger reads a value by a tap and zooms by a drag", () => open(name, { viewport: { width: 360, height: 740 }, hasTouch: true }, async (page, context) => {
      await page.locator("#curves-chart").scrollIntoViewIfNeeded();
      const box = await page.locator("#curves-chart .plot").boundingBox();
      await page.touchscreen.tap(box.x + box.width / 2, box.y + 40);
      assert.ok(await page.locator("#curves-chart .readout").isVisible());
      const touch = await context.newCDPSession(page);
      const send = (type, share) => touch.send("Input.dispatchTouchEvent", {
        type, touchPoints: share === null ? [] : [{ x: box.x + share * box.width, y: box.y + 40 }],
      });
      await send("touchStart", 0.3);
      for (const share of [0.4, 0.5, 0.6, 0.7]) await send("touchMove", share);
      await send("touchEnd", null);
      assert.ok(await page.locator("#zoom-reset").isEnabled());
    }));

    test("a phone needs no sideways scrolling, also with everything open and a value read", () => open(name, { viewport: { width: 360, height: 740 }, hasTouch: true }, async (page) => {
      await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
      if (data.curves.length) await holder(page, "curves-chart").press("End");
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
    }));

    test("text can be read in the light and in the dark", async () => {
      for (const colorScheme of ["light", "dark"]) {
        await open(name, { colorScheme }, async (page) => {
          await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
          assert.deepEqual(await page.evaluate(poorContrasts), [], colorScheme);
          const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
          assert.equal(paper, colorScheme === "dark" ? "rgb(20, 23, 27)" : "rgb(255, 255, 255)");
        });
      }
    });

    test("on paper the page is light, open and complete", () => open(name, { colorScheme: "dark" }, async (page) => {
      await page.evaluate(() => addEventListener("beforeprint", () => {
        window.printed = { closed: document.querySelectorAll("details:not([open])").length };
      }));
      const pdf = await page.pdf({ format: "A4" });
      assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
      assert.ok(pdf.length > 10_000, `${pdf.length} bytes`);
      assert.deepEqual(await page.evaluate(() => window.printed), { closed: 0 });
      assert.ok(await page.locator("details:not([open])").count() > 0);
      await page.emulateMedia({ media: "print" });
      assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
      assert.ok(await page.locator(".controls").first().isHidden());
    }));

    test("the keyboard reaches everything and shows where it is", () => open(name, {}, async (page) => {
      await page.keyboard.press("Tab");
      assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
      const focusable = "a[href], button:enabled, input:enabled, select, summary, [tabindex='0']";
      const expected = await page.locator(focusable).filter({ visible: true }).count();
      // Radio buttons of a group are one stop; everything else is one each.
      const grouped = await page.locator('input[type="radio"]:not(:checked)').filter({ visible: true }).count();
      for (let stop = 1; stop < expected - grouped; stop += 1) {
        await page.keyboard.press("Tab");
        const seen = await page.evaluate(() => {
          const element = document.activeElement;
          const shown = element.closest(".controls fieldset label")?.querySelector("span") || element;
          return element === document.body ? "nothing" : getComputedStyle(shown).outlineStyle;
        });
        assert.equal(seen, "solid", `stop ${stop}`);
      }
      await page.keyboard.press("Tab");
      assert.equal(await page.evaluate(() => document.activeElement.tagName), "BODY");
    }));

    test("every control, region and chart has a name", () => open(name, {}, async (page) => {
      const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input, select, [role]")].filter((element) =>
        !(element.labels?.length || element.textContent.trim() || element.getAttribute("aria-label") || element.getAttribute("aria-labelledby")),
      ).map((element) => element.outerHTML.slice(0, 80)));
      assert.deepEqual(nameless, []);
    }));

    test("the commands can be copied", () => open(name, {}, async (page, context) => {
      await context.grantPermissions(["clipboard-read", "clipboard-write"]);
      await page.locator("#reproduce .copyable button").click();
      await page.locator("#reproduce .copyable button", { hasText: "Copied" }).waitFor();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), data.reproduce.join("\n"));
    }));

    test("without JavaScript the tables and a still chart are there", () => open(name, { javaScriptEnabled: false }, async (page) => {
      assert.equal(await page.locator("#results-table tbody tr").count(), data.curves.length);
      assert.equal(await page.locator("#differences-table td[data-value]").count(), 2 * data.differences.length);
      assert.ok(await page.locator("#curves .still svg").isVisible());
      assert.ok(await page.locator(".needs-script").first().isHidden());
      assert.ok(await page.locator(".scripted").first().isVisible());
    }));

    test("nothing moves for those who asked for stillness", () => open(name, { reducedMotion: "reduce" }, async (page) => {
      assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).scrollBehavior), "auto");
    }));
  });
}
