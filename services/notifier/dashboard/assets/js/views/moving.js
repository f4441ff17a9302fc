// A job in the operator's hand: taken up, carried, put down, by pointer or by keyboard. Before that nothing is sent.

const EDGE_PX = 60,
  SCROLL_PX = 14;

function take({ line, n, lines, held, told }, lifted) {
  held.value = { id: line.job_id, at: n, lifted };
  told.value = `Took up job ${n + 1} of ${lines.length}.`;
}

export function keysOf(hand) {
  const { line, lines, held, drop, told } = hand;
  const holds = () => held.value?.id === line.job_id;
  const shift = (by) => {
    const at = Math.max(0, Math.min(lines.length - 1, held.value.at + by));
    held.value = { ...held.value, at };
    told.value = `Place ${at + 1} of ${lines.length}.`;
  };
  const letGo = () => {
    held.value = null;
    told.value = "Let go; nothing was moved.";
  };
  return (event) => {
    const toggle = () => (holds() ? drop() : take(hand, false));
    const act = {
      " ": toggle,
      Enter: toggle,
      ...(holds() && { ArrowUp: () => shift(-1), ArrowDown: () => shift(1), Escape: letGo, Tab: letGo }),
    }[event.key];
    if (!act) return;
    if (event.key !== "Tab") event.preventDefault();
    act();
  };
}

export function grabbed(hand, own) {
  const { line, held, drop } = hand;
  return (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    event.target.focus();
    take(hand, true);
    const row = own.current,
      from = event.clientY + scrollY;
    const over = ({ clientY }) => {
      if (clientY < EDGE_PX) scrollBy(0, -SCROLL_PX);
      else if (clientY > innerHeight - EDGE_PX) scrollBy(0, SCROLL_PX);
      row.style.transform = `translateY(${clientY + scrollY - from}px)`;
      const at = indexAt(row, clientY);
      if (at !== held.value?.at) held.value = { id: line.job_id, at, lifted: true };
    };
    const stop = () => {
      row.style.transform = "";
      for (const [type, act] of Object.entries(acts)) removeEventListener(type, act);
    };
    const letGo = () => (stop(), (held.value = null));
    const acts = {
      pointermove: over,
      pointerup: () => (stop(), drop()),
      pointercancel: letGo,
      keydown: ({ key }) => key === "Escape" && letGo(),
    };
    for (const [type, act] of Object.entries(acts)) addEventListener(type, act);
  };
}

/** The place among the other lines that the pointer stands at. */
function indexAt(row, y) {
  const rest = [...row.parentElement.children].filter((item) => item !== row);
  const at = rest.findIndex((item) => y < item.getBoundingClientRect().top + item.offsetHeight / 2);
  return at < 0 ? rest.length : at;
}
