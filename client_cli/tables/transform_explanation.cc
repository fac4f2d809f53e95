#include "client_cli/tables/transform_explanation.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/human_units.h"
#include "client_cli/tables/proto_json.h"

namespace optfarm::client_cli {
namespace {

// "340 -> 300", or one number where nothing changed.
std::string FromTo(const std::string& before, const std::string& after) {
  return before == after ? before : absl::StrCat(before, " -> ", after);
}

std::string Headline(const v1::TransformStats& step) {
  return absl::StrCat(PrintableLine(step.step()), "\n  ",
                      step.changed() ? absl::StrCat(step.matches(), " changed")
                                     : "nothing changed",
                      "; ",
                      FromTo(absl::StrCat(step.nodes_before()),
                             absl::StrCat(step.nodes_after())),
                      " nodes, ",
                      FromTo(HumanBytes(step.const_bytes_before()),
                             HumanBytes(step.const_bytes_after())),
                      " of constants, ",
                      HumanDuration(absl::Seconds(step.seconds())), "\n");
}

// "  removed   3 Identity, 1 Const\n", a line for each kind of change.
std::string OpLines(const v1::TransformStats& step) {
  std::vector<std::string> removed, added, became;
  for (const v1::OpChange& change : step.op_changes()) {
    const std::string from = PrintableLine(change.from());
    const std::string to = PrintableLine(change.to());
    if (from.empty()) {
      added.push_back(absl::StrCat(change.nodes(), " ", to));
    } else if (to.empty()) {
      removed.push_back(absl::StrCat(change.nodes(), " ", from));
    } else {
      became.push_back(absl::StrCat(change.nodes(), " ", from, " -> ", to));
    }
  }
  std::string text;
  for (const auto& [title, list] :
       {std::pair("removed", removed), std::pair("added", added),
        std::pair("became", became)}) {
    if (list.empty()) continue;
    absl::StrAppend(&text, "  ", title, ": ", absl::StrJoin(list, ", "), "\n");
  }
  return text;
}

std::string SkippedLines(const v1::TransformStats& step) {
  std::string text;
  for (const v1::SkippedMatch& skipped : step.skipped()) {
    absl::StrAppend(&text, "  left ", PrintableLine(skipped.node()),
                    " alone: ", PrintableLine(skipped.reason()), "\n");
  }
  const int64_t more = step.skipped_count() - step.skipped_size();
  if (more > 0) absl::StrAppend(&text, "  left ", more, " more alone\n");
  return text;
}

}  // namespace

std::string ExplainAsText(absl::Span<const v1::TransformStats> steps) {
  std::string text;
  for (const v1::TransformStats& step : steps) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", Headline(step));
    if (!step.ignored_error().empty()) {
      absl::StrAppend(&text, "  failed and was left out: ",
                      PrintableText(step.ignored_error()), "\n");
    }
    absl::StrAppend(&text, OpLines(step));
    for (const std::string& warning : step.warnings()) {
      absl::StrAppend(&text, "  warning: ", PrintableLine(warning), "\n");
    }
    absl::StrAppend(&text, SkippedLines(step));
  }
  return text;
}

std::string ExplainAsJson(absl::Span<const v1::TransformStats> steps) {
  std::vector<std::string> objects;
  for (const v1::TransformStats& step : steps) {
    objects.push_back(ProtoToJsonLine(step));
  }
  return absl::StrCat("[", absl::StrJoin(objects, ",\n "), "]\n");
}

Table SkippedTable(absl::Span<const v1::TransformStats> steps) {
  Table table({{"step", "STEP"}, {"node", "NODE"}, {"reason", "REASON"}});
  for (const v1::TransformStats& step : steps) {
    for (const v1::SkippedMatch& skipped : step.skipped()) {
      table.AddRow({Cell::Text(step.step()), Cell::Text(skipped.node()),
                    Cell::Text(skipped.reason())});
    }
  }
  return table;
}

}  // namespace optfarm::client_cli
