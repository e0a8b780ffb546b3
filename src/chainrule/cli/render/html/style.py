"""The look of a page: light or dark as its reader likes, on a phone as on a desk."""

STYLE = """
:root { --paper: #fbfaf8; --card: #fff; --ink: #1d1f23; --faint: #6b7078; --line: #e5e2dc; --one: #2f6db5;
  --two: #c8641c; --three: #2c8a64; --bad: #b3342f; --code: #f3f1ec; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --paper: #15171a; --card: #1d2024; --ink: #e8e6e1; --faint: #9a9fa8;
  --line: #31353b; --one: #74a9e6; --two: #eb9a5a; --three: #66c29c; --bad: #ef8079; --code: #24282d; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; font-size: 16px; }
main { max-width: 58rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0; overflow-wrap: anywhere; letter-spacing: -.01em; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem; }
p { margin: .4rem 0; } small, .faint { color: var(--faint); }
.pill { display: inline-block; padding: 0 .6rem; border-radius: 1rem; font-size: .85rem; color: var(--card);
  background: var(--three); vertical-align: .2rem; margin-left: .5rem; }
.pill.interrupted, .pill.running, .pill.empty { background: var(--two); }
.pill.damaged, .pill.failed { background: var(--bad); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .75rem; margin: 1.5rem 0; }
.tiles div, figure, .card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
.tiles div { padding: .7rem .9rem; }
.tiles b { display: block; font-size: 1.35rem; font-weight: 600; line-height: 1.3; }
figure { margin: 0 0 1rem; padding: .8rem .8rem .3rem; }
figcaption { display: flex; flex-wrap: wrap; gap: .1rem .6rem; align-items: baseline; padding: 0 .3rem; }
.legend { margin-left: auto; font-size: .85rem; color: var(--faint); } .legend span { margin-left: .9rem; }
.legend i { display: inline-block; width: .9rem; height: .2rem; border-radius: .1rem; vertical-align: .25rem;
  margin-right: .35rem; background: currentColor; }
svg { display: block; width: 100%; height: auto; } svg text { fill: var(--faint); font-size: 13px; }
.left { text-anchor: end; dominant-baseline: middle; } .below { text-anchor: middle; }
.grid { stroke: var(--line); fill: none; } .line { fill: none; stroke: currentColor; stroke-width: 2.2;
  stroke-linejoin: round; } .band { fill: currentColor; opacity: .18; } .dots circle { fill: currentColor; }
.one { color: var(--one); } .two { color: var(--two); } .three { color: var(--three); }
.card { padding: .7rem .9rem; margin-bottom: .75rem; } .card.problem { border-left: .3rem solid var(--bad); }
.card.note { border-left: .3rem solid var(--two); }
pre { margin: .4rem 0 0; padding: .7rem .9rem; background: var(--code); border-radius: .4rem; white-space: pre-wrap;
  overflow-wrap: anywhere; font: .85rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.table { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .9rem; }
td, th { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; } th { font-weight: 500; color: var(--faint); width: 11rem; }
.columns { display: grid; grid-template-columns: 1fr 1fr; gap: 0 2.5rem; }
.columns th { font-family: ui-monospace, Menlo, Consolas, monospace; }
summary { cursor: pointer; color: var(--faint); }
footer { margin-top: 3rem; font-size: .85rem; color: var(--faint); }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1rem; }
.pair svg text { font-size: 24px; } .pair .line { stroke-width: 4; } .pair .dots circle { r: 7px; }
@media (max-width: 40rem) { main { padding: 1.2rem .8rem 3rem; } h1 { font-size: 1.35rem; } th { width: 8rem; }
  svg text { font-size: 24px; } .line { stroke-width: 4; } .dots circle { r: 7px; } .pair { display: block; }
  .legend { margin-left: 0; width: 100%; } .legend span { margin: 0 .9rem 0 0; } .columns { display: block; }
  figure { padding: .6rem .4rem .2rem; } }
"""
