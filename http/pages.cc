#include "http/pages.h"

#include <utility>

#include "http/open_api.h"

namespace optfarm::http {
namespace {

constexpr char kHtml[] = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Optfarm: REST API</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem;
       margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff; }
h2 { margin: 2rem 0 .5rem; font-size: 1.1rem; }
details { border-top: 1px solid #ddd; padding: .4rem 0; }
summary { cursor: pointer; }
code, summary { font-family: ui-monospace, monospace; }
.verb { display: inline-block; width: 4.5rem; font-weight: bold; }
table { border-collapse: collapse; margin: .5rem 0; }
td { padding: .1rem 1rem .1rem 0; vertical-align: top; }
td:last-child, p { white-space: pre-line; }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #181818; }
  a { color: #8bf; } details { border-color: #444; }
}
</style>
</head>
<body>
<h1>Optfarm: REST API</h1>
<p>What this server answers over HTTP, as
<a href="/openapi.json">/openapi.json</a> says it. Calls carry the header
<code>Authorization: Bearer TOKEN</code> where the server wants tokens.</p>
<main id="services">Loading.</main>
<script src="/docs.js"></script>
</body>
</html>
)html";

constexpr char kScript[] = R"js('use strict';
function element(name, text, parent) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}
function schemaName(schema) {
  if (!schema) return '';
  if (schema.$ref) return schema.$ref.split('/').pop();
  if (schema.type === 'array') return 'list of ' + schemaName(schema.items);
  return schema.format || schema.type || '';
}
function bodyOf(part) {
  return Object.entries((part && part.content) || {})
      .map(([type, { schema }]) => type + ': ' + schemaName(schema)).join(', ');
}
function showOperation(path, verb, operation, parent) {
  const details = element('details', '', parent);
  const summary = element('summary', '', details);
  const word = element('span', verb.toUpperCase(), summary);
  word.className = 'verb';
  summary.append(path + (operation.summary ? ': ' + operation.summary : ''));
  element('p', operation.description, details);
  element('p', operation.operationId + '; needs scope ' +
      operation['x-optfarm-scopes'].join(' or '), details);
  const table = element('table', '', details);
  const row = (a, b, c) => {
    const line = element('tr', '', table);
    for (const text of [a, b, c]) element('td', text, line);
  };
  for (const { name, in: where, schema, description } of operation.parameters) {
    row(name, where + ' ' + schemaName(schema), description);
  }
  if (operation.requestBody) row('', 'body', bodyOf(operation.requestBody));
  for (const [status, answer] of Object.entries(operation.responses)) {
    const known = answer.$ref ? responses[schemaName(answer)] : answer;
    row(status, bodyOf(known), known.description);
  }
}
let responses = {};
async function show() {
  const main = document.getElementById('services');
  const api = await (await fetch('/openapi.json')).json();
  responses = api.components.responses;
  main.textContent = '';
  const services = {};
  for (const [path, verbs] of Object.entries(api.paths)) {
    for (const [verb, operation] of Object.entries(verbs)) {
      (services[operation.tags[0]] ||= []).push([path, verb, operation]);
    }
  }
  for (const name of Object.keys(services).sort()) {
    element('h2', name, main);
    const tag = api.tags.find((one) => one.name === name);
    element('p', tag && tag.description, main);
    for (const one of services[name]) showOperation(...one, main);
  }
  element('h2', 'Messages', main);
  for (const [name, schema] of Object.entries(api.components.schemas)) {
    const details = element('details', '', main);
    element('summary', name, details);
    element('p', schema.description, details);
    if (schema.enum) element('p', schema.enum.join(', '), details);
    const table = element('table', '', details);
    for (const [field, property] of Object.entries(schema.properties || {})) {
      const line = element('tr', '', table);
      const type = property.allOf ? property.allOf[0] : property;
      for (const text of [field, schemaName(type), property.description]) {
        element('td', text, line);
      }
    }
  }
}
show();
)js";

Page Fixed(std::string content_type, std::string body) {
  return [content_type = std::move(content_type),
          body = std::move(body)](const RequestHead&) {
    Reply reply;
    reply.content_type = content_type;
    reply.body = body;
    // Nothing from elsewhere, nothing inside of others' pages.
    reply.headers.emplace_back(
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; connect-src 'self'; "
        "style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'");
    return reply;
  };
}

}  // namespace

void AddDescriptionPages(absl::string_view version, ServiceMap* services) {
  services->pages["/docs"] = Fixed("text/html; charset=utf-8", kHtml);
  services->pages["/docs.js"] =
      Fixed("text/javascript; charset=utf-8", kScript);
  services->pages["/openapi.json"] =
      Fixed("application/json", MakeOpenApi(services->routes, version));
}

Reply TextReply(int status, absl::string_view text) {
  Reply reply;
  reply.status = status;
  reply.content_type = "text/plain; charset=utf-8";
  reply.body = std::string(text);
  return reply;
}

}  // namespace optfarm::http
