// Graphs for tests, written in a few words.

#ifndef OPTFARM_TESTS_ENGINE_GRAPH_TEXT_GRAPH_H_
#define OPTFARM_TESTS_ENGINE_GRAPH_TEXT_GRAPH_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "google/protobuf/text_format.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::graph::testing {

// Makes a graph from one node a line:
//
//   name = Op(input, input:1, ^control) key { attr value } key { ... }
//
// where each "key { ... }" is an attribute's AttrValue in protobuf's text
// form, for instance `T { type: DT_FLOAT }`; keys of one word only.
inline absl::StatusOr<Graph> ParseTextGraph(absl::string_view text,
                                            int producer = 26) {
  tensorflow::GraphDef def;
  def.mutable_versions()->set_producer(producer);
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<std::string, std::string> sides =
        absl::StrSplit(line, absl::MaxSplits(" = ", 1));
    if (sides.second.empty()) continue;
    tensorflow::NodeDef* node = def.add_node();
    node->set_name(std::string(absl::StripAsciiWhitespace(sides.first)));
    const size_t open = sides.second.find('(');
    const size_t close = sides.second.find(')');
    node->set_op(sides.second.substr(0, open));
    for (absl::string_view input :
         absl::StrSplit(sides.second.substr(open + 1, close - open - 1), ',',
                        absl::SkipWhitespace())) {
      node->add_input(std::string(absl::StripAsciiWhitespace(input)));
    }
    // "key { value }" becomes "attr { key: 'key' value { value } }".
    std::string rest = sides.second.substr(close + 1);
    std::string attrs;
    int depth = 0;
    std::string key;
    for (char c : rest) {
      if (c == '{' && depth++ == 0) {
        absl::StrAppend(&attrs, "attr { key: '",
                        absl::StripAsciiWhitespace(key), "' value {");
        key.clear();
      } else if (c == '}' && --depth == 0) {
        absl::StrAppend(&attrs, "} }");
      } else {
        (depth == 0 ? key : attrs).push_back(c);
      }
    }
    google::protobuf::TextFormat::Parser parser;
    tensorflow::NodeDef parsed;
    if (!parser.ParseFromString(attrs, &parsed)) {
      return absl::InvalidArgumentError(absl::StrCat("cannot read: ", line));
    }
    node->MergeFrom(parsed);
  }
  return Graph::FromDef(std::move(def));
}

// The same; the test fails when the text is wrong.
inline Graph TextGraph(absl::string_view text, int producer = 26) {
  absl::StatusOr<Graph> graph = ParseTextGraph(text, producer);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

// An int32 constant's attributes: a vector, or for one value without brackets
// a scalar.
inline std::string Int32s(const std::vector<int>& values) {
  std::string text = absl::StrCat(
      "dtype { type: DT_INT32 } value { tensor { dtype: DT_INT32 "
      "tensor_shape { dim { size: ",
      values.size(), " } } ");
  for (int value : values) absl::StrAppend(&text, "int_val: ", value, " ");
  return text + "} }";
}
inline std::string Int32(int value) {
  return absl::StrCat(
      "dtype { type: DT_INT32 } value { tensor { dtype: DT_INT32 "
      "tensor_shape { } int_val: ",
      value, " } }");
}

// A float constant of zeros of the given shape.
inline std::string Floats(const std::vector<int>& shape) {
  std::string text =
      "dtype { type: DT_FLOAT } value { tensor { dtype: DT_FLOAT "
      "tensor_shape { ";
  for (int dim : shape) absl::StrAppend(&text, "dim { size: ", dim, " } ");
  return text + "} float_val: 0 } }";
}

// A placeholder's attributes; -1 is an unknown dimension.
inline std::string FloatOf(const std::vector<int>& shape) {
  std::string text = "dtype { type: DT_FLOAT } shape { shape { ";
  for (int dim : shape) absl::StrAppend(&text, "dim { size: ", dim, " } ");
  return text + "} }";
}

// T { type: DT_FLOAT }
inline constexpr char kFloat[] = " T { type: DT_FLOAT } ";

}  // namespace optfarm::graph::testing

#endif  // OPTFARM_TESTS_ENGINE_GRAPH_TEXT_GRAPH_H_
