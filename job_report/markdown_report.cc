#include "job_report/markdown_report.h"

#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace optfarm::job_report {
namespace {

constexpr int kMostWarnings = 10;
constexpr char kNone[] = "–";

// Text that Markdown shows as it is: names in a job are anybody's words, and
// must not become links, mentions or cells of a table.
std::string Plain(absl::string_view text) {
  const std::string line = absl::StrJoin(
      absl::StrSplit(text, absl::ByAnyChar(" \t\n\v\f\r"), absl::SkipEmpty()),
      " ");
  std::string plain;
  for (const char c : line) {
    if (absl::StrContains("\\`*_{}[]()#+!|~", absl::string_view(&c, 1))) {
      plain.push_back('\\');
    }
    switch (c) {
      case '&':
        plain.append("&amp;");
        break;
      case '<':
        plain.append("&lt;");
        break;
      case '>':
        plain.append("&gt;");
        break;
      case '@':
        plain.append("@\u200b");
        break;
      default:
        plain.push_back(c);
    }
  }
  return absl::StrReplaceAll(plain, {{"://", "&#58;//"}, {"www.", "www&#46;"}});
}

std::string Mark(v1::ShippingVerdict::Answer answer) {
  switch (answer) {
    case v1::ShippingVerdict::YES:
      return "✅";
    case v1::ShippingVerdict::NO:
      return "❌";
    case v1::ShippingVerdict::UNCLEAR:
      return "❔";
    default:
      return "";
  }
}

std::string SizeText(int64_t bytes) {
  struct Unit {
    double bytes;
    absl::string_view name;
  };
  constexpr Unit kUnits[] = {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}};
  if (bytes == 0) return kNone;
  for (const Unit& unit : kUnits) {
    if (static_cast<double>(bytes) >= unit.bytes) {
      return absl::StrFormat("%.3g %s", static_cast<double>(bytes) / unit.bytes,
                             unit.name);
    }
  }
  return absl::StrCat(bytes, " B");
}

const v1::Measurement* MeasurementOf(const v1::Job& job,
                                     const v1::ShippingVerdict& verdict) {
  for (const v1::Measurement& one : job.measurements()) {
    if (one.variant() == verdict.variant() &&
        one.device() == verdict.device() &&
        one.threads() == verdict.threads()) {
      return &one;
    }
  }
  return nullptr;
}

std::vector<std::string> Cells(const v1::Job& job,
                               const v1::ShippingVerdict& verdict) {
  const v1::Measurement* measured = MeasurementOf(job, verdict);
  const v1::Report& report = job.report();
  const bool is_original = verdict.answer() == v1::ShippingVerdict::BASELINE;
  const v1::Accuracy& accuracy =
      is_original ? report.float_accuracy() : report.optimized_accuracy();
  const int64_t made = is_original ? report.size_before().file_bytes()
                                   : report.size_after().file_bytes();
  return {
      verdict.variant(),
      verdict.device().empty() ? kNone : verdict.device(),
      verdict.threads() == 0 ? kNone : absl::StrCat(verdict.threads()),
      SizeText(measured ? measured->file_size_bytes() : made),
      measured ? absl::StrFormat("%.3g ms%s", measured->median_us() / 1000,
                                 measured->noisy() ? " (noisy)" : "")
               : kNone,
      // Accuracy is that of Optfarm's runtime.
      accuracy.samples() > 0 && !absl::StrContains(verdict.variant(), '@')
          ? absl::StrFormat("%.2f %%", accuracy.top1())
          : kNone,
      std::string(absl::StripAsciiWhitespace(
          absl::StrCat(Mark(verdict.answer()), " ", verdict.text()))),
  };
}

// The outcome in one line.
std::string Headline(const v1::Job& job) {
  if (job.state() != v1::SUCCEEDED) {
    const std::string& why = job.failure().message();
    return absl::StrCat("❌ ", v1::JobState_Name(job.state()), ": ",
                        why.empty() ? "no reason is known" : why);
  }
  for (const auto answer :
       {v1::ShippingVerdict::NO, v1::ShippingVerdict::UNCLEAR,
        v1::ShippingVerdict::YES}) {
    for (const v1::ShippingVerdict& verdict : job.verdicts()) {
      if (verdict.answer() != answer) continue;
      return absl::StrCat(Mark(answer), " ", verdict.variant(),
                          verdict.device().empty()
                              ? ""
                              : absl::StrCat(" on ", verdict.device()),
                          ": ", verdict.text());
    }
  }
  return "✅ passed";
}

std::string TableText(const v1::Job& job) {
  if (job.verdicts().empty()) return "";
  std::string text =
      "| variant | device | threads | size | median | top-1 | verdict |\n"
      "|---|---|--:|--:|--:|--:|---|\n";
  for (const v1::ShippingVerdict& verdict : job.verdicts()) {
    absl::StrAppend(
        &text, "| ",
        absl::StrJoin(Cells(job, verdict), " | ",
                      [](std::string* out, const std::string& cell) {
                        out->append(Plain(cell));
                      }),
        " |\n");
  }
  return absl::StrCat(text, "\n");
}

std::string Details(absl::string_view summary,
                    const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string text =
      absl::StrCat("<details><summary>", summary, "</summary>\n\n");
  for (const std::string& item : items) {
    absl::StrAppend(&text, "- ", Plain(item), "\n");
  }
  return absl::StrCat(text, "\n</details>\n\n");
}

std::string Count(size_t count, absl::string_view thing) {
  return absl::StrCat(count, " ", thing, count == 1 ? "" : "s");
}

std::string GatesText(const v1::Job& job) {
  std::string missed;
  std::vector<std::string> held;
  for (const v1::GateResult& gate : job.gates()) {
    if (gate.passed()) {
      held.push_back(absl::StrCat(gate.name(), ": ", gate.message()));
    } else {
      absl::StrAppend(&missed, "- ❌ **", Plain(gate.name()),
                      "**: ", Plain(gate.message()), "\n");
    }
  }
  return absl::StrCat(
      missed, missed.empty() ? "" : "\n",
      Details(absl::StrCat(Count(held.size(), "gate"), " held"), held));
}

std::string WarningsText(const v1::Report& report) {
  std::vector<std::string> shown;
  for (const std::string& warning : report.warnings()) {
    if (shown.size() == kMostWarnings) {
      shown.push_back(absl::StrCat(
          "and ", report.warnings_size() - kMostWarnings, " more"));
      break;
    }
    shown.push_back(warning);
  }
  return Details(Count(static_cast<size_t>(report.warnings_size()), "warning"),
                 shown);
}

std::string DefaultTitle(const v1::Job& job) {
  const v1::JobSpec& spec = job.spec();
  const std::string& name =
      spec.name().empty() ? spec.model().name() : spec.name();
  const std::string& recipe = job.report().recipe_name().empty()
                                  ? spec.recipe().name()
                                  : job.report().recipe_name();
  std::vector<std::string> words;
  if (!name.empty()) words.push_back(name);
  if (!recipe.empty()) words.push_back(absl::StrCat("(", recipe, ")"));
  return words.empty() ? "Optfarm" : absl::StrJoin(words, " ");
}

}  // namespace

std::string MarkdownReport(const v1::Job& job, absl::string_view title) {
  std::string text =
      absl::StrCat("### ", Plain(title.empty() ? DefaultTitle(job) : title),
                   "\n\n", Plain(Headline(job)), "\n\n", TableText(job),
                   GatesText(job), WarningsText(job.report()));
  if (!job.job_id().empty()) {
    std::string id;
    for (const char c : job.job_id()) {
      if (absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-') {
        id.push_back(c);
      }
    }
    absl::StrAppend(&text, "Job `", id, "`\n");
  }
  absl::StripTrailingAsciiWhitespace(&text);
  return absl::StrCat(text, "\n");
}

}  // namespace optfarm::job_report
