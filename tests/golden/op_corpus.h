// The corpus of small graphs that were recorded with TensorFlow: each has its
// frozen graph, its inputs, the outputs to reach and every tensor in between.

#ifndef OPTFARM_TESTS_GOLDEN_OP_CORPUS_H_
#define OPTFARM_TESTS_GOLDEN_OP_CORPUS_H_

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "tests/golden/tar_archive.h"

namespace optfarm::testing {

// What TensorFlow gave, as it was printed: one element a line.
struct RecordedTensor {
  std::vector<int64_t> shape;
  std::vector<std::string> elements;

  double Number(size_t i) const {
    const std::string& text = elements[i];
    if (text == "True") return 1.0;
    if (text == "False") return 0.0;
    return std::strtod(text.c_str(), nullptr);
  }
};

// By the tensor's name, "a/b" or "a/b:1".
using RecordedTensors = std::map<std::string, RecordedTensor>;

struct OpCorpusCase {
  // The serialized GraphDef.
  std::string graph;
  RecordedTensors inputs;
  RecordedTensors outputs;
  RecordedTensors between;
};

using OpCorpus = std::map<std::string, OpCorpusCase>;

namespace op_corpus_internal {

inline std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    lines.emplace_back(absl::StripAsciiWhitespace(line));
  }
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

// "a____b.1" is a/b:1.
inline std::string TensorNameOf(absl::string_view file) {
  std::string name = absl::StrReplaceAll(file, {{"____", "/"}});
  const size_t dot = name.rfind('.');
  int port = 0;
  if (dot != std::string::npos &&
      absl::SimpleAtoi(name.substr(dot + 1), &port)) {
    name.resize(dot);
    if (port > 0) absl::StrAppend(&name, ":", port);
  }
  return name;
}

// The kind of a recorded file, "" for others; `name` loses the ending.
inline std::string TakeEnding(std::string* name) {
  for (const char* kind : {"placeholder", "prediction_inbw", "prediction"}) {
    const std::string ending = absl::StrCat(".", kind, ".csv");
    if (absl::EndsWith(*name, ending)) {
      name->resize(name->size() - ending.size());
      return kind;
    }
  }
  return "";
}

}  // namespace op_corpus_internal

// ERRORS: an archive that cannot be read.
inline absl::StatusOr<OpCorpus> ReadOpCorpus(const std::string& archive) {
  using op_corpus_internal::Lines;
  using Files = std::map<std::string, std::string>;
  OPTFARM_ASSIGN_OR_RETURN(const Files files, ReadTarGz(archive));
  const std::string kModel = "/frozen_model.pb";
  const std::string kExamples = "tf_graphs/examples/";
  OpCorpus corpus;
  for (const auto& [path, content] : files) {
    if (!absl::EndsWith(path, kModel)) continue;
    const std::string folder = path.substr(0, path.size() - kModel.size());
    OpCorpusCase entry;
    entry.graph = content;
    for (auto it = files.lower_bound(folder + "/");
         it != files.end() && absl::StartsWith(it->first, folder + "/"); ++it) {
      std::string name = it->first.substr(folder.size() + 1);
      const std::string kind = op_corpus_internal::TakeEnding(&name);
      if (kind.empty()) continue;
      RecordedTensor tensor;
      tensor.elements = Lines(it->second);
      const auto shape = files.find(
          absl::StrCat(absl::StripSuffix(it->first, ".csv"), ".shape"));
      if (shape == files.end()) continue;
      for (const std::string& dim : Lines(shape->second)) {
        tensor.shape.push_back(std::strtoll(dim.c_str(), nullptr, 10));
      }
      // A scalar was written as one element of shape 0.
      if (tensor.shape == std::vector<int64_t>{0} &&
          tensor.elements.size() == 1) {
        tensor.shape.clear();
      }
      RecordedTensors& to = kind == "placeholder"  ? entry.inputs
                            : kind == "prediction" ? entry.outputs
                                                   : entry.between;
      to.emplace(op_corpus_internal::TensorNameOf(name), std::move(tensor));
    }
    const size_t start = folder.find(kExamples);
    corpus.emplace(start == std::string::npos
                       ? folder
                       : folder.substr(start + kExamples.size()),
                   std::move(entry));
  }
  return corpus;
}

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_GOLDEN_OP_CORPUS_H_
