// What the viewer never writes, found in the page, or in the part of it that a selector names: a list of
// complaints. The body of a function.
const TAGS = new Set(
  ("html head meta title link script body header nav main section article aside footer search " +
    "h1 h2 h3 h4 h5 h6 p div span ul ol li dl dt dd table caption colgroup col thead tbody tfoot tr th td " +
    "code pre kbd samp mark small strong em b i s ins del time abbr br hr wbr a button form input label select " +
    "option textarea details summary dialog output meter progress figure figcaption fieldset legend template " +
    "svg g rect line path circle text").split(" "),
);
const URLS = ["href", "src", "action", "formaction", "xlink:href", "poster", "data", "srcset", "ping", "background"];
const MARKS = "[pwned],.pwned,#pwned,[name=pwned]";
// By the prototypes: content that got through may have put itself in the place of a document's or a form's members.
const root = arguments[0] ? Document.prototype.querySelector.call(document, arguments[0]) : document.documentElement;
const all = (selector) => Element.prototype.querySelectorAll.call(root, selector);
const names = (element) => Element.prototype.getAttributeNames.call(element);
const given = (element, name) => Element.prototype.getAttribute.call(element, name) ?? "";
const nameOf = Object.getOwnPropertyDescriptor(Element.prototype, "localName").get;
const found = [];

for (const element of all("*")) {
  const tag = nameOf.call(element);
  const ownSheet = tag === "style" && location.protocol === "file:" && element.parentNode === document.head;
  if (!TAGS.has(tag) && !ownSheet) found.push(`element: <${tag}>`);
  if (tag === "script" && !given(element, "src") && location.protocol !== "file:")
    found.push("element: <script> without a source");
  for (const name of names(element)) {
    const value = given(element, name);
    if (name.startsWith("on") || name === "style" || name === "srcdoc")
      found.push(`attribute: <${tag} ${name}=${value.slice(0, 80)}>`);
    if (URLS.includes(name)) {
      const target = URL.parse(value, document.baseURI);
      if (target?.origin !== location.origin || target.protocol !== location.protocol)
        found.push(`address: <${tag} ${name}=${value.slice(0, 80)}>`);
    }
  }
}
for (const element of all(MARKS)) found.push(`element: <${nameOf.call(element)}> of the content`);
if (window.pwned !== undefined) found.push("script: it ran");
if (all("meta[http-equiv=refresh]").length) found.push("element: <meta http-equiv=refresh>");
if (document.title === "pwned!") found.push("script: it changed the title");
return found;
