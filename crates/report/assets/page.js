// Brings the page to life: charts, theme, contents. Without script the tables and texts remain.
"use strict";

(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  for (const details of document.querySelectorAll("details.data")) details.open = false;

  const charts = [...document.querySelectorAll(".plot[data-figure]")].map(
    (host) => new Charts.Chart(host, figures[host.dataset.figure]),
  );
  const observer = new ResizeObserver((entries) => {
    for (const entry of entries) {
      const chart = charts.find((one) => one.frame === entry.target);
      if (Math.abs(chart.width - entry.contentRect.width) > 1 && entry.contentRect.width > 0)
        chart.draw(entry.contentRect.width);
    }
  });
  for (const chart of charts) observer.observe(chart.frame);
  // Paper is narrower than most screens: draw for it, so that letters keep their size.
  addEventListener("beforeprint", () =>
    charts.forEach((chart) => {
      chart.cursor = -1;
      chart.draw(680, 290);
    }),
  );
  addEventListener("afterprint", () => charts.forEach((chart) => chart.draw()));

  // The theme follows the system until the button is pressed, then stays for the visit.
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const remembered = () => {
    try {
      return sessionStorage.getItem("theme");
    } catch {
      return null;
    }
  };
  const remember = (theme) => {
    try {
      sessionStorage.setItem("theme", theme);
    } catch {
      /* private mode */
    }
  };
  function show() {
    const chosen = remembered() ?? root.dataset.theme ?? null;
    const dark = chosen ? chosen === "dark" : system.matches;
    if (chosen) root.dataset.theme = chosen;
    button.setAttribute("aria-pressed", String(dark));
  }
  button.addEventListener("click", () => {
    const theme = button.getAttribute("aria-pressed") === "true" ? "light" : "dark";
    root.dataset.theme = theme;
    remember(theme);
    show();
  });
  system.addEventListener("change", show);
  show();

  // The contents mark the section being read.
  const links = new Map(
    [...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]),
  );
  const sections = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  const mark = () => {
    const here =
      sections.findLast((section) => section.getBoundingClientRect().top < innerHeight * 0.3) ??
      sections[0];
    for (const [id, link] of links) {
      if (here && id === here.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  addEventListener("scroll", mark, { passive: true });
  mark();
})();
