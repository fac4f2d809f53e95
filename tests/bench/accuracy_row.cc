#include "tests/bench/accuracy_row.h"

#include <functional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace optfarm::bench {
namespace {

// Calls `field` for every member of a row, in the file's order.
template <typename Row, typename Field>
void ForEachField(Row& row, Field field) {
  field(row.model);
  field(row.recipe);
  field(row.error);
  field(row.calibration_samples);
  field(row.measured_samples);
  field(row.float_top1);
  field(row.top1);
  field(row.loss_low);
  field(row.loss_high);
  field(row.agreement);
  field(row.snr_db);
  field(row.bytes_before);
  field(row.bytes_after);
  field(row.gzip_before);
  field(row.gzip_after);
  field(row.zstd_after);
  field(row.convolutions);
  field(row.integer_convolutions);
  field(row.products);
  field(row.integer_products);
  field(row.float_layers);
  field(row.attempt);
  field(row.passed);
  field(row.seconds);
  field(row.detections);
}

constexpr size_t kColumnsBefore = 24;

struct FieldPrinter {
  std::vector<std::string>* columns;

  void operator()(const std::string& text) const {
    columns->push_back(absl::StrReplaceAll(text, {{"\t", " "}, {"\n", " "}}));
  }
  void operator()(double number) const {
    columns->push_back(absl::StrFormat("%.9g", number));
  }
  template <typename Whole>
  void operator()(Whole number) const {
    columns->push_back(absl::StrCat(static_cast<int64_t>(number)));
  }
};

struct FieldParser {
  const std::vector<std::string>& columns;
  size_t* at;
  bool* good;

  absl::string_view Next() const {
    if (*at >= columns.size()) *good = false;
    return *good ? absl::string_view(columns[(*at)++]) : absl::string_view();
  }
  void operator()(std::string& text) const { text = std::string(Next()); }
  void operator()(double& number) const {
    *good = absl::SimpleAtod(Next(), &number) && *good;
  }
  template <typename Whole>
  void operator()(Whole& number) const {
    int64_t value = 0;
    *good = absl::SimpleAtoi(Next(), &value) && *good;
    number = static_cast<Whole>(value);
  }
};

std::string SnrText(double snr) {
  return snr > 99 ? "> 99" : absl::StrFormat("%.1f", snr);
}

// "97.5 %" or "31.2 dB".
std::string Closeness(const AccuracyRow& row) {
  if (!row.detections.empty()) {
    return absl::StrFormat("%.1f %% · %s dB", 100 * row.agreement,
                           SnrText(row.snr_db));
  }
  if (row.agreement < 0) return absl::StrCat(SnrText(row.snr_db), " dB");
  return absl::StrFormat("%.1f %%", 100 * row.agreement);
}

double Ratio(int64_t after, int64_t before) {
  return before > 0 ? static_cast<double>(after) / static_cast<double>(before)
                    : 0;
}

// Which aims the row misses; empty: none.
std::string Misses(const AccuracyCase& c, const AccuracyRow& row) {
  std::vector<std::string> misses;
  if (c.most_top1_loss > 0 && row.top1 >= 0 &&
      row.float_top1 - row.top1 > c.most_top1_loss + 1e-9) {
    misses.push_back(absl::StrFormat("loses %.2f points, %g are allowed",
                                     row.float_top1 - row.top1,
                                     c.most_top1_loss));
  }
  if (c.least_agreement > 0 && row.agreement < c.least_agreement) {
    misses.push_back(absl::StrFormat("agrees for %.1f %%, %g %% are asked for",
                                     100 * row.agreement,
                                     100 * c.least_agreement));
  }
  if (c.least_snr_db > 0 && row.snr_db < c.least_snr_db) {
    misses.push_back(absl::StrFormat("%.1f dB, %g are asked for", row.snr_db,
                                     c.least_snr_db));
  }
  if (row.bytes_before > 1'000'000 && !c.is_coded &&
      Ratio(row.bytes_after, row.bytes_before) > 0.27) {
    misses.push_back(absl::StrFormat("%.3f of the size, the aim is 0.27",
                                     Ratio(row.bytes_after, row.bytes_before)));
  }
  if (row.error.empty()) return absl::StrJoin(misses, "; ");
  return absl::StrCat("not measured: ", row.error);
}

const AccuracyRow* Find(const AccuracyRows& rows, const std::string& model,
                        const std::string& recipe) {
  const auto found = rows.find({model, recipe});
  return found == rows.end() ? nullptr : &found->second;
}

void PrintOverview(const AccuracyRows& rows,
                   absl::Span<const AccuracyCase> cases,
                   absl::Span<const std::string> recipes, std::string* page) {
  absl::StrAppend(page, "| model | samples measured | float top-1 |");
  for (const std::string& recipe : recipes) {
    absl::StrAppend(page, " ", recipe, " |");
  }
  absl::StrAppend(page, "\n|---|--:|--:|");
  for (size_t i = 0; i < recipes.size(); ++i) absl::StrAppend(page, "--:|");
  absl::StrAppend(page, "\n");
  for (const AccuracyCase& c : cases) {
    std::string cells;
    const AccuracyRow* any = nullptr;
    for (const std::string& recipe : recipes) {
      const AccuracyRow* row = Find(rows, c.name, recipe);
      if (row == nullptr) {
        absl::StrAppend(&cells, " |");
        continue;
      }
      if (!row->error.empty()) {
        absl::StrAppend(&cells, " – |");
        continue;
      }
      any = row;
      if (row->top1 >= 0) absl::StrAppendFormat(&cells, " %.1f ·", row->top1);
      absl::StrAppend(&cells, " ", Closeness(*row), " |");
    }
    if (any == nullptr) continue;
    absl::StrAppend(
        page, "| ", c.name, " | ", any->measured_samples, " | ",
        any->float_top1 < 0 ? "–" : absl::StrFormat("%.1f %%", any->float_top1),
        " |", cells, "\n");
  }
}

void PrintMissing(const AccuracyRows& rows,
                  absl::Span<const AccuracyCase> cases, std::string* page) {
  std::vector<std::string> missing;
  for (const AccuracyCase& c : cases) {
    if (Find(rows, c.name, "int8") == nullptr) missing.push_back(c.name);
  }
  if (missing.empty()) return;
  absl::StrAppend(page, "\nNot in this run: ", absl::StrJoin(missing, ", "),
                  ".\n");
}

void PrintRecipe(const AccuracyRows& rows, absl::Span<const AccuracyCase> cases,
                 const std::string& recipe, std::string* page) {
  absl::StrAppend(
      page, "\n## ", recipe,
      "\n\n| model | top-1, change with its 95 % interval | agreement | SNR "
      "dB | size | gzip | zstd | 8-bit convolutions | 8-bit products | seconds "
      "|\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  for (const AccuracyCase& c : cases) {
    const AccuracyRow* row = Find(rows, c.name, recipe);
    if (row == nullptr || !row->error.empty()) continue;
    std::string change = "–";
    if (row->top1 >= 0) {
      change =
          absl::StrFormat("%+.2f (%+.2f … %+.2f)", row->top1 - row->float_top1,
                          row->loss_low, row->loss_high);
    }
    absl::StrAppendFormat(
        page,
        "| %s | %s | %s | %s | %.3f | %.3f | %.3f | %d of %d | %d of %d | %.1f "
        "|\n",
        row->model, change,
        row->agreement < 0 ? "–"
                           : absl::StrFormat("%.1f %%", 100 * row->agreement),
        SnrText(row->snr_db), Ratio(row->bytes_after, row->bytes_before),
        Ratio(row->gzip_after, row->bytes_before),
        Ratio(row->zstd_after, row->bytes_before), row->integer_convolutions,
        row->convolutions, row->integer_products, row->products, row->seconds);
  }
}

void PrintDetections(const AccuracyRows& rows,
                     absl::Span<const AccuracyCase> cases,
                     absl::Span<const std::string> recipes, std::string* page) {
  std::string lines;
  for (const AccuracyCase& c : cases) {
    for (const std::string& recipe : recipes) {
      const AccuracyRow* row = Find(rows, c.name, recipe);
      if (row == nullptr || row->detections.empty()) continue;
      absl::StrAppend(&lines, "- ", c.name, ", `", recipe,
                      "`: ", row->detections, "\n");
    }
  }
  if (lines.empty()) return;
  absl::StrAppend(
      page,
      "\n"
      "## What detectors find\n"
      "\n"
      "Detections with a score of at least 0.5 on all measured pictures. A "
      "detection counts as found if the other model has one of the same class "
      "with at least half of its score and an IoU of at least 0.5. It is new "
      "if only the result has it.\n"
      "\n",
      lines);
}

void PrintFloatLayers(const AccuracyRows& rows,
                      absl::Span<const AccuracyCase> cases, std::string* page) {
  absl::StrAppend(page, "\n## What stays in float with `int8`, and why\n\n",
                  "| model | chain taken | convolutions and products in float "
                  "|\n|---|---|---|\n");
  for (const AccuracyCase& c : cases) {
    const AccuracyRow* row = Find(rows, c.name, "int8");
    if (row == nullptr || !row->error.empty()) continue;
    absl::StrAppend(page, "| ", row->model, " | ", row->attempt, " | ",
                    row->float_layers.empty() ? "none" : row->float_layers,
                    " |\n");
  }
}

void PrintMisses(const AccuracyRows& rows, absl::Span<const AccuracyCase> cases,
                 std::string* page) {
  absl::StrAppend(page,
                  "\n"
                  "## Where `int8` misses its aims\n"
                  "\n"
                  "The aims:\n"
                  "\n"
                  "| models | aim |\n"
                  "|---|---|\n"
                  "| ImageNet | at most 1 point of top-1 lost, 90 % agreement "
                  "|\n"
                  "| digits | at most 0.2 points of top-1 lost |\n"
                  "| flowers, cifar, customvision | 97 % agreement |\n"
                  "| speech | 96 % agreement |\n"
                  "| others | 20 dB |\n"
                  "| files above 1 MB | 0.27 of the size |\n"
                  "\n");
  for (const AccuracyCase& c : cases) {
    if (!c.is_coded || Find(rows, c.name, "int8") == nullptr) continue;
    absl::StrAppend(page, "The weights of ", c.name,
                    " are quantized to 8 bits in the original, so its size "
                    "has no aim.\n\n");
  }
  bool any = false;
  for (const AccuracyCase& c : cases) {
    const AccuracyRow* row = Find(rows, c.name, "int8");
    if (row == nullptr) continue;
    const std::string misses = Misses(c, *row);
    if (misses.empty()) continue;
    any = true;
    absl::StrAppend(page, "- ", c.name, ": ", misses, "\n");
  }
  if (!any) absl::StrAppend(page, "It misses none.\n");
}

}  // namespace

std::string PrintRows(const AccuracyRows& rows) {
  std::string text;
  for (const auto& [key, row] : rows) {
    std::vector<std::string> columns;
    ForEachField(row, FieldPrinter{&columns});
    absl::StrAppend(&text, absl::StrJoin(columns, "\t"), "\n");
  }
  return text;
}

absl::StatusOr<AccuracyRows> ParseRows(absl::string_view text) {
  AccuracyRows rows;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    std::vector<std::string> columns = absl::StrSplit(line, '\t');
    // Rows of before there were detections.
    if (columns.size() == kColumnsBefore) columns.emplace_back();
    AccuracyRow row;
    size_t at = 0;
    bool good = true;
    ForEachField(row, FieldParser{columns, &at, &good});
    if (!good || at != columns.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, " is no row of results"));
    }
    const std::pair<std::string, std::string> key(row.model, row.recipe);
    rows[key] = std::move(row);
  }
  return rows;
}

std::string PrintAccuracyPage(const AccuracyRows& rows,
                              absl::Span<const AccuracyCase> cases,
                              absl::Span<const std::string> recipes) {
  std::string page =
      "# Accuracy of the built-in recipes\n\n"
      "Printed by `tests/bench/accuracy` (see the head of accuracy.cc), "
      "release build.\n"
      "\n"
      "- Calibration: 100 samples without labels, or half of the samples "
      "where there are fewer than 150.\n"
      "- Measurement: all other samples, which the optimizer never saw.\n"
      "- `int8-tf14` is TensorFlow 1.4's own chain.\n"
      "\n"
      "| model | a cell shows |\n"
      "|---|---|\n"
      "| with labels | top-1 · agreement |\n"
      "| with classes, without labels | agreement: the share of samples whose "
      "best class is the float model's |\n"
      "| without classes | signal-to-noise ratio of the worst output |\n"
      "| mtcnn | the share of pictures with the same number of faces |\n"
      "| ssd_mobilenet | the share of the float model's detections that were "
      "found · the signal-to-noise ratio of the boxes and scores that go into "
      "the selection |\n"
      "\n";
  PrintOverview(rows, cases, recipes, &page);
  PrintMissing(rows, cases, &page);
  PrintMisses(rows, cases, &page);
  PrintDetections(rows, cases, recipes, &page);
  PrintFloatLayers(rows, cases, &page);
  absl::StrAppend(
      &page,
      "\n# Recipe by recipe\n\nSize, gzip and zstd are divided by the float "
      "file's bytes. "
      "The interval is that of paired proportions (formula 23 of "
      "[quantization.md](quantization.md)).\n");
  for (const std::string& recipe : recipes) {
    PrintRecipe(rows, cases, recipe, &page);
  }
  return page;
}

}  // namespace optfarm::bench
