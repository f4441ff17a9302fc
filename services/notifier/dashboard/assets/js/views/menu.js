import { html, useEffect, useRef } from "/assets/vendor/preact.js";

/** A button that opens a sheet below it; a click elsewhere or Escape closes it. */
export function Menu({ label, kind = "", children }) {
  const box = useRef(null);
  useEffect(() => {
    const leave = ({ type, key, target }) => {
      if (type === "keydown" ? key === "Escape" : !box.current.contains(target)) box.current.open = false;
    };
    for (const type of ["keydown", "pointerdown"]) addEventListener(type, leave);
    return () => ["keydown", "pointerdown"].forEach((type) => removeEventListener(type, leave));
  }, []);
  return html`<details class=${`menu ${kind}`} ref=${box}>
    <summary><span class="cut">${label}</span></summary><div class="sheet">${children}</div></details>`;
}
