// Pointing at a step of one chart reads all charts at that step.
(() => {
  "use strict";
  const charts = [...document.querySelectorAll(".chart")].map((figure) => {
    const plot = figure.querySelector(".plot");
    const keys = [...figure.querySelectorAll("[data-key]")];
    return {
      plot,
      rule: plot.querySelector(".rule"),
      first: Number(plot.dataset.first),
      last: Number(plot.dataset.last),
      unit: plot.dataset.unit,
      lines: [...plot.querySelectorAll(".curve")].map((curve, index) => ({
        steps: curve.dataset.steps.split(" ").map(Number),
        values: curve.dataset.values.split(" ").map(Number),
        key: keys[index],
        last: keys[index].textContent,
      })),
    };
  });

  const number = (value) => {
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(1).replace("-", "\u2212").replace("e+", "e");
    return String(Number(value.toPrecision(3))).replace("-", "\u2212");
  };
  const units = {
    number,
    percent: (value) => number(100 * value) + "\u2009%",
    seconds: (value) => (Math.abs(value) < 0.1 ? number(1000 * value) + "\u2009ms" : number(value) + "\u2009s"),
  };

  const at = (line, step) => {
    let [low, high] = [0, line.steps.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (line.steps[middle] < step) low = middle + 1;
      else high = middle;
    }
    if (low > 0 && step - line.steps[low - 1] < line.steps[low] - step) low -= 1;
    return low;
  };

  const read = (step) => {
    for (const chart of charts) {
      const width = chart.last - chart.first;
      chart.rule.hidden = false;
      chart.rule.style.left = (width ? (100 * (step - chart.first)) / width : 50) + "%";
      chart.rule.classList.toggle("right", width > 0 && (step - chart.first) / width > 0.8);
      chart.rule.firstElementChild.textContent = "step " + step;
      for (const line of chart.lines) line.key.textContent = units[chart.unit](line.values[at(line, step)]);
    }
  };
  const rest = () => {
    for (const chart of charts) {
      chart.rule.hidden = true;
      for (const line of chart.lines) line.key.textContent = line.last;
    }
  };

  for (const chart of charts) {
    let step = chart.last;
    const longest = chart.lines.reduce((one, other) => (other.steps.length > one.steps.length ? other : one));
    const snap = (wanted) => longest.steps[at(longest, wanted)];
    chart.plot.addEventListener("pointermove", (event) => {
      const box = chart.plot.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      read((step = snap(Math.round(chart.first + share * (chart.last - chart.first)))));
    });
    chart.plot.addEventListener("pointerleave", rest);
    chart.plot.addEventListener("blur", rest);
    chart.plot.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!way) return;
      const place = at(longest, step) + way;
      read((step = longest.steps[Math.min(longest.steps.length - 1, Math.max(0, place))]));
      event.preventDefault();
    });
  }
})();
