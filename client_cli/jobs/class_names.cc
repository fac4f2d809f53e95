#include "client_cli/jobs/class_names.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "client_cli/flags/flags.h"
#include "engine/formats/models/load_model.h"
#include "engine/graph/model_notes.h"

namespace optfarm::client_cli {
namespace {

// UNITS: bytes of a labels file, classes. What has more is no list for people.
constexpr int64_t kMostLabelBytes = 1'000'000;
constexpr size_t kMostClasses = 100'000;

const v1::DataSource* Find(const v1::Dataset& data, v1::DataSource::Role role) {
  const auto found = absl::c_find_if(
      data.sources(), [role](const auto& one) { return one.role() == role; });
  return found == data.sources().end() ? nullptr : &*found;
}

const v1::DataFile* LabelsFile(const v1::Dataset& data) {
  const v1::DataSource* labels = Find(data, v1::DataSource::LABELS);
  return labels == nullptr || labels->files().empty() ? nullptr
                                                      : &labels->files(0);
}

// The folders that the samples lie in; "" for those that lie in none.
std::set<std::string> Folders(const v1::Dataset& data) {
  std::set<std::string> folders;
  const v1::DataSource* samples = Find(data, v1::DataSource::SAMPLES);
  if (samples == nullptr) return folders;
  for (const v1::DataFile& file : samples->files()) {
    const size_t slash = file.path().find('/');
    folders.insert(slash == std::string::npos ? ""
                                              : file.path().substr(0, slash));
  }
  return folders;
}

bool IsNumber(absl::string_view text) {
  return !text.empty() && absl::c_all_of(text, absl::ascii_isdigit);
}

// "3:name" and "name" are the class "name".
std::string NameOf(absl::string_view line) {
  const size_t colon = line.find(':');
  if (colon != absl::string_view::npos &&
      IsNumber(absl::StripAsciiWhitespace(line.substr(0, colon)))) {
    line.remove_prefix(colon + 1);
  }
  return std::string(absl::StripAsciiWhitespace(line));
}

std::vector<std::string> Lines(const std::string& labels, int64_t offset,
                               const std::set<std::string>& folders) {
  if (offset < 0 || static_cast<size_t>(offset) > kMostClasses) return {};
  std::vector<std::string> names(offset);
  bool any = false;
  for (absl::string_view line : absl::StrSplit(labels, '\n')) {
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    if (names.size() == kMostClasses) return {};
    names.push_back(NameOf(line));
    any |= folders.count(names.back()) > 0;
  }
  if (!any) names.clear();
  return names;
}

bool HasClasses(const v1::Report& report) {
  return absl::c_any_of(report.worst_samples(), [](const auto& sample) {
    return sample.float_class() >= 0;
  });
}

// Arrays and records are no lines of text.
bool MayHaveNames(const v1::DataFile& file) {
  const std::string path = absl::AsciiStrToLower(file.path());
  return absl::c_none_of(
      std::initializer_list<const char*>{".npy", ".npz", ".gz", ".tfrecord",
                                         ".tfrecords", ".record"},
      [&path](const char* ending) { return absl::EndsWith(path, ending); });
}

}  // namespace

std::vector<std::string> ClassNames(const v1::Report& report,
                                    const v1::Dataset& data,
                                    const std::string& labels) {
  if (!report.has_float_accuracy() || !HasClasses(report)) return {};
  const std::set<std::string> folders = Folders(data);
  if (Find(data, v1::DataSource::LABELS) != nullptr) {
    return Lines(labels, data.labels_offset(), folders);
  }
  // Folders that are numbers are the classes themselves.
  if (folders.count("") > 0 || absl::c_all_of(folders, IsNumber)) return {};
  return {folders.begin(), folders.end()};
}

std::vector<std::string> ClassNamesFromServer(const v1::Job& job,
                                              FarmClient& client) {
  const v1::Dataset& data = job.spec().calibration();
  if (!job.report().has_float_accuracy() || !HasClasses(job.report())) {
    return {};
  }
  const v1::DataFile* file = LabelsFile(data);
  if (file == nullptr) return ClassNames(job.report(), data, "");
  if (!MayHaveNames(*file) || file->digest().size_bytes() > kMostLabelBytes) {
    return {};
  }
  absl::StatusOr<std::string> made = MakeTemporaryFolder("optctl_labels_");
  if (!made.ok()) return {};
  const ScopedFolder folder(*std::move(made));
  const std::string path = JoinPath(folder.path(), "labels");
  if (!client.Download(file->digest(), path, [](int64_t, int64_t) {}).ok()) {
    return {};
  }
  const absl::StatusOr<std::string> text = ReadFile(path, kMostLabelBytes);
  return text.ok() ? ClassNames(job.report(), data, *text)
                   : std::vector<std::string>();
}

std::vector<std::string> ClassNamesHere(const v1::Report& report,
                                        const JobRequest& request) {
  if (!HasClasses(report)) return {};
  const optimize::LocalData& data = request.work.data;
  std::string text;
  const int labels = data.Find(v1::DataSource::LABELS);
  if (labels >= 0 && MayHaveNames(data.dataset.sources(labels).files(0))) {
    text = ReadFile(data.PathOf(labels), kMostLabelBytes).value_or("");
  }
  std::vector<std::string> names = ClassNames(report, data.dataset, text);
  if (!names.empty()) return names;
  const absl::StatusOr<formats::LoadedGraph> model =
      formats::LoadModel(request.work.model_path);
  if (!model.ok()) return {};
  return graph::ReadModelNotes(model->def).labels;
}

}  // namespace optfarm::client_cli
