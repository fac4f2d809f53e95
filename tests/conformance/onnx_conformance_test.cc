// The whole of ONNX's backend test suite, as Debian's package libonnx-testdata
// has it, and the table in docs/onnx.md that is printed from its run:
//   OPTFARM_UPDATE_DOCS=1 build/release/bin/conformance_test

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "tests/conformance/onnx_case.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::testing {
namespace {

constexpr char kBegin[] = "<!-- printed by conformance_test: begin -->\n";
constexpr char kEnd[] = "<!-- printed by conformance_test: end -->\n";

using Outcomes = std::map<std::string, CaseOutcome>;

const Outcomes& AllOutcomes() {
  static const auto* const outcomes = [] {
    auto* made = new Outcomes;
    // A case that ends the process is the last one named.
    const bool is_loud = std::getenv("OPTFARM_CONFORMANCE_VERBOSE") != nullptr;
    for (const std::string& name : OnnxCases()) {
      if (is_loud) fprintf(stderr, "%s\n", name.c_str());
      (*made)[name] = RunOnnxCase(name);
    }
    return made;
  }();
  return *outcomes;
}

#define OPTFARM_REQUIRE_SUITE()                                          \
  do {                                                                   \
    if (AllOutcomes().empty()) {                                         \
      GTEST_SKIP() << "scripts/install_deps --tests installs the cases"; \
    }                                                                    \
  } while (false)

struct Tally {
  int in_scope = 0;
  int passed = 0;
  int refused = 0;
  int wrong = 0;
  int failed = 0;

  void Count(const CaseOutcome& outcome) {
    if (outcome.result == CaseResult::kOutOfScope) return;
    ++in_scope;
    passed += outcome.result == CaseResult::kPassed;
    refused += outcome.result == CaseResult::kRefused;
    wrong += outcome.result == CaseResult::kWrong;
    failed += outcome.result == CaseResult::kFailed;
  }
};

std::string GroupOf(const std::string& name) {
  return name.substr(0, name.find('/'));
}

std::string Failures() {
  std::string text;
  for (const auto& [name, outcome] : AllOutcomes()) {
    if (outcome.result == CaseResult::kPassed ||
        outcome.result == CaseResult::kOutOfScope) {
      continue;
    }
    const char* what = outcome.result == CaseResult::kRefused ? "refused"
                       : outcome.result == CaseResult::kWrong ? "wrong"
                                                              : "failed";
    absl::StrAppend(&text, name, " (", what, "): ", outcome.reason, "\n");
  }
  return text;
}

TEST(OnnxConformanceTest, NearlyAllCasesInScopePass) {
  OPTFARM_REQUIRE_SUITE();
  Tally all;
  for (const auto& [name, outcome] : AllOutcomes()) all.Count(outcome);
  RecordProperty("passed", all.passed);
  RecordProperty("in_scope", all.in_scope);
  EXPECT_GE(all.in_scope, 980);
  EXPECT_GE(all.passed * 100, all.in_scope * 97) << Failures();
  EXPECT_LE(all.wrong * 1000, all.in_scope * 3) << Failures();
}

TEST(OnnxConformanceTest, ModelsOfPytorchPass) {
  OPTFARM_REQUIRE_SUITE();
  Tally tally;
  for (const auto& [name, outcome] : AllOutcomes()) {
    if (GroupOf(name) != "node") tally.Count(outcome);
  }
  EXPECT_GE(tally.passed, 120) << Failures();
}

// --- The page ----------------------------------------------------------------

std::string GroupTable() {
  std::map<std::string, Tally> groups;
  std::map<std::string, int> outside;
  for (const auto& [name, outcome] : AllOutcomes()) {
    groups[GroupOf(name)].Count(outcome);
    if (outcome.result == CaseResult::kOutOfScope) ++outside[outcome.reason];
  }
  std::string text =
      "| folder | in scope | passed | refused | wrong | failed |\n"
      "|---|--:|--:|--:|--:|--:|\n";
  for (const auto& [group, tally] : groups) {
    absl::StrAppend(&text, "| ", group, " | ", tally.in_scope, " | ",
                    tally.passed, " | ", tally.refused, " | ", tally.wrong,
                    " | ", tally.failed, " |\n");
  }
  absl::StrAppend(&text, "\nOut of scope:");
  const char* separator = " ";
  for (const auto& [reason, count] : outside) {
    absl::StrAppend(&text, separator, reason, " (", count, ")");
    separator = ", ";
  }
  return text + ".\n";
}

std::string OperatorTable() {
  std::map<std::string, std::map<int, Tally>> operators;
  for (const auto& [name, outcome] : AllOutcomes()) {
    for (const std::string& op : outcome.operators) {
      if (outcome.result == CaseResult::kOutOfScope) continue;
      operators[op][outcome.opset].Count(outcome);
    }
  }
  std::string text =
      "| operator | cases | passed | by opset: passed of cases |\n"
      "|---|--:|--:|---|\n";
  for (const auto& [op, opsets] : operators) {
    Tally all;
    std::string by_opset;
    for (const auto& [opset, tally] : opsets) {
      all.in_scope += tally.in_scope;
      all.passed += tally.passed;
      absl::StrAppend(&by_opset, by_opset.empty() ? "" : ", ", opset, ": ",
                      tally.passed, " of ", tally.in_scope);
    }
    absl::StrAppend(&text, "| ", op, " | ", all.in_scope, " | ", all.passed,
                    " | ", by_opset, " |\n");
  }
  return text;
}

std::string FailureTable() {
  std::string text = "| case | result | reason |\n|---|---|---|\n";
  for (const auto& [name, outcome] : AllOutcomes()) {
    const char* what = outcome.result == CaseResult::kRefused  ? "refused"
                       : outcome.result == CaseResult::kWrong  ? "wrong"
                       : outcome.result == CaseResult::kFailed ? "failed"
                                                               : nullptr;
    if (what == nullptr) continue;
    absl::StrAppend(
        &text, "| ", name, " | ", what, " | ",
        absl::StrReplaceAll(outcome.reason, {{"|", "\\|"}, {"\n", " "}}),
        " |\n");
  }
  return text;
}

std::string PrintedSection() {
  return absl::StrCat(kBegin, "\n", GroupTable(),
                      "\nEvery case in scope that does not pass:\n\n",
                      FailureTable(),
                      "\nA case counts for each operator in it:\n\n",
                      OperatorTable(), "\n", kEnd);
}

TEST(OnnxConformanceTest, PageSaysWhatPasses) {
  OPTFARM_REQUIRE_SUITE();
  const std::string path = SourcePath("docs/onnx.md");
  OPTFARM_ASSERT_OK_AND_ASSIGN(std::string page, ReadFile(path));
  const size_t begin = page.find(kBegin);
  const size_t end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::string section = PrintedSection();
  const size_t length = end + std::string(kEnd).size() - begin;
  if (std::getenv("OPTFARM_UPDATE_DOCS") != nullptr) {
    page.replace(begin, length, section);
    OPTFARM_ASSERT_OK(WriteFileAtomically(path, page));
    return;
  }
  EXPECT_TRUE(page.substr(begin, length) == section)
      << "docs/onnx.md is old; print it with OPTFARM_UPDATE_DOCS=1";
}

}  // namespace
}  // namespace optfarm::testing
