// Labels: the number of the right class for each sample, from a labels file or
// from the names of the folders the samples lie in.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_LABELS_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_LABELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/optimize/samples/dataset.h"

namespace optfarm::optimize {

struct Labels {
  // One a sample of the dataset; -1: not labelled. Empty: no labels at all.
  std::vector<int64_t> classes;
  // Taken from folder names without being asked for; may be about other
  // classes than the model's.
  bool guessed = false;
  // "from labels.txt, by folder", for the report.
  std::string source;
  // Names of the classes from number `first_named` on; empty where the labels
  // are numbers.
  std::vector<std::string> names;
  int64_t first_named = 0;
};

// Reads a labels file. Its form is found by content:
//   - an .npy or IDX file of whole numbers, one a sample, or an .npz file with
//     such an array, which `member` names where there are several;
//   - a TFRecord file with one tf.Example a sample; `member` names the feature,
//     otherwise it is one of the usual names;
//   - lines with one whole number each, as many as samples;
//   - lines "path class" or "path,class" (also with a header, where the column
//     named "...<classes>", "label", "class" or "index" counts), path below the
//     folder or file name alone; the class is a number;
//   - class names, one a line in the model's order ("name" or "number:name"):
//     a sample's class is the line that its first folder is named after;
//     folders without a line belong to "_unknown_" where there is one.
// `classes` is the length of the model's output, -1 when it has no classes.
// `offset` is added to each class: 1 for a model whose first class stands for
// nothing while the labels begin at 0.
// ERRORS: those of reading the file; InvalidArgument naming the line when it
// has none of these forms, or labels nothing, or a class is out of range.
absl::StatusOr<Labels> LoadLabels(const std::string& path,
                                  const std::string& member,
                                  const Dataset& dataset, int64_t classes,
                                  int64_t offset = 0);

// Labels that stand in the samples' records; empty when none do.
// ERRORS: those of reading the records.
absl::StatusOr<Labels> LabelsFromRecords(const Dataset& dataset,
                                         int64_t classes, int64_t offset);

// Labels from the folders alone: their names if all are numbers, else their
// place in sorted order. Empty unless there are exactly `classes` folders, or
// numbers that are below `classes` after `offset` was added.
Labels GuessLabels(const Dataset& dataset, int64_t classes, int64_t offset = 0);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_LABELS_H_
