// What float ops are on quantized values, for the rows that name it. The
// quantized ops have rows of their own in quantized_ops.cc.

#ifndef OPTFARM_ENGINE_GRAPH_OPS_QUANTIZED_FORMS_H_
#define OPTFARM_ENGINE_GRAPH_OPS_QUANTIZED_FORMS_H_

#include "engine/graph/ops/op_row.h"

namespace optfarm::graph {

// --- Products ----------------------------------------------------------------

inline constexpr QuantizedForm kQuantizedConv2dForm = {
    .op = "QuantizedConv2D",
    .copied = "strides,padding",
    .value_types = "Tinput,Tfilter",
    .result_type = "out_type",
    .layer_op = "QuantizedConv2DWithBias"};
inline constexpr QuantizedForm kQuantizedDepthwiseForm = {
    .op = "QuantizedDepthwiseConv2D",
    .layer_op = "QuantizedDepthwiseConv2DWithBias"};
inline constexpr QuantizedForm kQuantizedMatMulForm = {
    .op = "QuantizedMatMul",
    .copied = "transpose_a,transpose_b",
    .value_types = "T1,T2",
    .result_type = "Toutput",
    .layer_op = "QuantizedMatMulWithBias"};

// --- Arithmetic --------------------------------------------------------------

inline constexpr QuantizedForm kQuantizedAddForm = {
    .op = "QuantizedAdd", .value_types = "T1,T2", .result_type = "Toutput"};
inline constexpr QuantizedForm kQuantizedMulForm = {
    .op = "QuantizedMul", .value_types = "T1,T2", .result_type = "Toutput"};
inline constexpr QuantizedForm kQuantizedBiasAddForm = {
    .op = "QuantizedBiasAdd",
    .value_types = "T1,T2",
    .result_type = "out_type"};

// --- Range-preserving ops and data movement ----------------------------------

inline constexpr QuantizedForm kQuantizedAvgPoolForm = {
    .op = "QuantizedAvgPool",
    .copied = "ksize,strides,padding",
    .value_types = "T"};
inline constexpr QuantizedForm kQuantizedMaxPoolForm = {
    .op = "QuantizedMaxPool",
    .copied = "ksize,strides,padding",
    .value_types = "T"};
inline constexpr QuantizedForm kQuantizedReluForm = {.op = "QuantizedRelu",
                                                     .value_types = "Tinput"};
inline constexpr QuantizedForm kQuantizedRelu6Form = {.op = "QuantizedRelu6",
                                                      .value_types = "Tinput"};
inline constexpr QuantizedForm kQuantizedResizeBilinearForm = {
    .op = "QuantizedResizeBilinear",
    .copied = "align_corners",
    .value_types = "T",
    .plain_input = 1};
inline constexpr QuantizedForm kQuantizedReshapeForm = {
    .op = "QuantizedReshape", .value_types = "T", .plain_input = 1};
// Squeeze and ExpandDims: a shape has to be made for them.
inline constexpr QuantizedForm kReshapeToForm = {.op = "QuantizedReshape"};
inline constexpr QuantizedForm kQuantizedConcatForm = {
    .op = "QuantizedConcat",
    .copied = "N",
    .value_types = "T",
    .plain_input = 0,
    .has_separate_ranges = true};
inline constexpr QuantizedForm kQuantizedConcatV2Form = {
    .op = "QuantizedConcatV2", .has_separate_ranges = true};

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_OPS_QUANTIZED_FORMS_H_
