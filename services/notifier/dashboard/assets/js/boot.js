// A page of which a part did not arrive (the network changed meanwhile, the server was away) is loaded again, less and
// less often. No module, as it must run whatever becomes of the modules.

(() => {
  const KEPT = "headgate.loads",
    FIRST_MS = 500,
    LONGEST_MS = 30_000,
    PARTS = ["modulepreload", "stylesheet"];
  const tried = Number(sessionStorage.getItem(KEPT));
  let again = 0;

  const wait = () => (again = setTimeout(reload, Math.min(LONGEST_MS, FIRST_MS * 2 ** tried)));
  const reload = () => fetch("/", { method: "HEAD" }).then(leave, wait); // else the browser shows a page of its own
  const leave = () => {
    sessionStorage.setItem(KEPT, tried + 1);
    location.reload();
  };
  const failed = ({ target }) => {
    if (again || !(target.tagName === "SCRIPT" || PARTS.includes(target.rel))) return;
    document.getElementById("app")?.replaceChildren("A part of this page did not arrive. Loading it again…");
    wait();
  };
  addEventListener("error", failed, true);
  addEventListener("load", () => again || sessionStorage.removeItem(KEPT));
})();
