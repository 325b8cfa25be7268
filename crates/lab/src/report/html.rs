//! Renders a page as one HTML file with the template `page.html`.

use super::{Block, Page, Section, Table};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{Environment, Error, context};

const PAGE: &str = include_str!("page.html");
const TABLE: &str = include_str!("table.html");
const BARS: &str = include_str!("bars.svg");
const LINES: &str = include_str!("lines.svg");
const STYLE: &str = include_str!("style.css");

/// Renders the page. Its Content Security Policy forbids the browser to load anything. So even a
/// fault in this module, for example in the escaping, cannot make the browser load anything.
pub(super) fn render_page(page: &Page) -> Result<String, Error> {
    let renderer = Renderer::new()?;
    let Page { title, lead, facts, sections } = page;
    let sections: Vec<Value> =
        sections.iter().map(|part| renderer.section(part)).collect::<Result<_, _>>()?;
    let style = Value::from_safe_string(STYLE.to_owned());
    renderer.environment.render_str(PAGE, context! { title, lead, facts, sections, style })
}

/// Renders the parts of a page with their templates.
struct Renderer {
    environment: Environment<'static>,
}

impl Renderer {
    fn new() -> Result<Self, Error> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).keep_trailing_newline(false).build()?;
        environment.set_syntax(syntax);
        environment.set_formatter(|out, _, value| {
            let text = value.to_string();
            Ok(out.write_str(&if value.is_safe() { text } else { escape(&text) })?)
        });
        environment.add_filter("at", |position: f64| format!("{position:.1}"));
        Ok(Self { environment })
    }

    fn section(&self, section: &Section) -> Result<Value, Error> {
        let blocks = section.blocks.iter().map(|part| self.block(part));
        Ok(context! { title => &section.title, blocks => blocks.collect::<Result<Vec<Value>, Error>>()? })
    }

    fn block(&self, block: &Block) -> Result<Value, Error> {
        Ok(match block {
            Block::Paragraph(text) => context! { text },
            Block::Notes(notes) => context! { notes },
            Block::Terms(terms) => context! { terms },
            Block::Charts(charts) => {
                let charts = charts.iter();
                let charts =
                    charts.map(|chart| self.chart(BARS, chart.template_variables(), &chart.data_table()));
                context! { charts => charts.collect::<Result<Vec<Value>, Error>>()? }
            }
            Block::LineCharts(charts) => {
                let charts = charts.iter();
                let charts =
                    charts.map(|chart| self.chart(LINES, chart.template_variables(), &chart.data_table()));
                context! { charts => charts.collect::<Result<Vec<Value>, Error>>()? }
            }
            Block::Table(table) => context! { table => self.table(table)? },
        })
    }

    /// Returns the variables of a chart, with its drawing and the table of its data.
    fn chart(&self, template: &str, variables: Value, data: &Table) -> Result<Value, Error> {
        let drawing = self.part(template, &variables)?;
        Ok(context! { drawing, table => self.table(data)?, ..variables })
    }

    fn table(&self, table: &Table) -> Result<Value, Error> {
        self.part(TABLE, &context! { table => table.template_variables() })
    }

    /// Renders a part whose markup the page then contains unchanged.
    fn part(&self, template: &str, variables: &Value) -> Result<Value, Error> {
        Ok(Value::from_safe_string(self.environment.render_str(template, variables)?))
    }
}

/// Escapes text for HTML, between tags and in quoted attributes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(letter),
            letter if letter.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            letter => out.push(letter),
        }
    }
    out
}
