// The frame of every page: title, remarks, links to its parts; style and script stand in the page
// itself, and nothing is loaded.
#pragma once

#include <string>
#include <vector>

namespace rk {

// The beginning of every page, by which a program recognises its own.
inline constexpr const char* kReportBegins = "<!DOCTYPE html>\n<!-- A report by Rankine -->\n";

struct PageHead {
  std::string title;
  std::string data;                  // what the page is about, in words
  std::vector<std::string> remarks;  // sentences without their period
  std::vector<std::string> notes;    // the same: what the page must be read with
};

struct PagePart {
  const char *id, *title;
  std::string contents;  // HTML; empty: the part is left out
};

std::string page_of(const PageHead& head, const std::vector<PagePart>& parts);

}  // namespace rk
