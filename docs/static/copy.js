// A button on each block of code copies it; of a console's block the commands, without `$` and what they print.
"use strict";

function textOf(pre) {
  const copy = pre.cloneNode(true);
  const prompts = copy.querySelectorAll(".gp");
  copy.querySelectorAll(prompts.length ? ".gp, .go" : "none").forEach((shown) => shown.remove());
  const text = copy.textContent.trim();
  return (prompts.length ? text.replace(/\n{2,}/g, "\n") : text) + "\n";
}

function addButton(pre) {
  const button = document.createElement("button");
  button.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(textOf(pre));
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  pre.parentElement.append(button);
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("div.highlight pre").forEach(addButton));
