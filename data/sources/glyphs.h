// `glyphs[:key=value,...]`: drawn characters that look handwritten, so that everything runs without
// a download. Nothing is stored: a drawing is a function of (seed, alphabet, character, drawing),
// and there is no end of them.
//
// An alphabet has a handful of strokes of its own; its characters are made of two to four of them,
// placed differently, so characters of one alphabet are easily confused. A drawing imitates one
// writer: every stroke is moved, scaled and bent a little, the whole is slanted, turned, stretched
// and warped, then inked by a round pen of the writer's thickness, dark on white, anti-aliased (ink
// = 1/2 + radius - distance in pixels, clipped, which is exact for a straight edge across the
// pixel's middle).
//
// train takes the even alphabets, test the odd ones: they share no alphabet, and more training
// classes leave the test set unchanged. Category = alphabet. The keys below `variation` set how
// much drawings of one character differ; `variation` scales all of them except the thickness.
#pragma once

#include "data/sources/dataset.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rk {

struct GlyphOptions {
  std::int64_t classes = 100, test_classes = 100;  // characters in the split, over all alphabets
  std::int64_t alphabets = 5, test_alphabets = 5;
  std::int64_t images = 20;  // drawings per character
  int size = 64;             // side in pixels
  std::uint64_t seed = 0;    // seed of the drawings, not of the training run
  double variation = 1;      // scales every key below but the thickness
  double bend = 0.045;    // standard deviation of a stroke's control points, share of the character
  double place = 0.05;    // of a stroke's position, share of the character
  double stretch = 0.16;  // of the log of a stroke's and the character's scale
  double slant = 14;      // of the slant, degrees
  double turn = 10;       // of the rotation, degrees
  double warp = 0.04;     // amplitude of a smooth bending of the paper, share of the character
  double shift = 0.08;    // of the character's position, share of the picture
  double thickness =
      0.045;  // of the pen, share of the picture; a writer's lies within a factor of 1.5
};

std::string_view glyphs_help();
std::vector<std::string> glyphs_keys();
GlyphOptions glyph_options(const DataSpec& spec);  // UsageError
std::vector<Split> glyphs_splits(const DataSpec& spec);
Dataset read_glyphs(const DataSpec& spec, Split split);

// One drawing, size x size.
Image draw_glyph(const GlyphOptions& options, std::int64_t alphabet, std::int64_t character,
                 std::int64_t drawing);

}  // namespace rk
