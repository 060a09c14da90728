//! `wearmark advise`

use advise::balance::{Mean, Processor, Rates};
use advise::choice::{Choice, choose};
use advise::endurance::ClassRate;
use advise::memory::{BreakEven, Pages};
use advise::{Answer, Interval, speed_up};
use predict::Question;
use profile::Profile;
use study::advising::life::{LoadOf, life, written};
use study::advising::offers;
use study::advising::placing::{Limits, placements};
use study::advising::prices::{Asked, PriceBook, SHIPPED};
use study::advising::text;
use study::profiles::{read_device, read_profile};
use study::result::StudyResult;
use study::run_dir;

use super::{Context, Outcome, output};
use crate::cli::{
    Advise, AdviseBuy, AdviseLife, AdvisePlace, Balance, Faster, MeanName, Memory, Pricing,
    Relaxed, WhatIf,
};
use crate::failure::Advice;

/// Runs the command.
pub fn run(command: Advise, context: &Context) -> anyhow::Result<Outcome> {
    match command {
        Advise::Buy(arguments) => buy(&arguments, context),
        Advise::Place(arguments) => place(&arguments, context),
        Advise::Life(arguments) => lives(arguments, context),
        Advise::WhatIf(what) => what_if(what, context),
        Advise::Prices => {
            output::print(SHIPPED)?;
            Ok(Outcome::Fine)
        }
    }
}

impl Pricing {
    fn asked(&self) -> anyhow::Result<(Asked, PriceBook)> {
        if !(self.years.is_finite() && self.years > 0.0) {
            let cause = format!("--years {}: a drive is used for some time", self.years);
            return Err(Advice::error(cause, "give the years until it is replaced, such as 5"));
        }
        let asked = Asked {
            size: self.size,
            log_size: self.log_size,
            years: self.years,
            currency: self.currency.to_uppercase(),
        };
        Ok((asked, PriceBook::read(self.prices.as_deref())?))
    }

    fn p99_ms(&self) -> Option<f64> {
        self.p99.map(|limit| limit.0 as f64 / 1e6)
    }
}

fn buy(arguments: &AdviseBuy, context: &Context) -> anyhow::Result<Outcome> {
    let pricing = &arguments.pricing;
    if !arguments.on.is_empty() {
        return simulated(
            &arguments.source,
            &arguments.on,
            pricing,
            arguments.seed,
            false,
            context,
        );
    }
    let (asked, book) = pricing.asked()?;
    let offers = offers::read(&arguments.source, &pricing.kind, &asked, &book)?;
    let choice = choose(&offers, pricing.p99_ms())?;
    if context.json {
        output::json(&choice)?;
    } else {
        print_choice(&choice, pricing)?;
    }
    Ok(verdict(&choice))
}

fn place(arguments: &AdvisePlace, context: &Context) -> anyhow::Result<Outcome> {
    let AdvisePlace { prefix, on, pricing, seed } = arguments;
    simulated(prefix, on, pricing, *seed, true, context)
}

/// Predicts a capture on every device, or on every placement over them.
fn simulated(
    prefix: &std::path::Path,
    on: &[String],
    pricing: &Pricing,
    seed: u64,
    apart: bool,
    context: &Context,
) -> anyhow::Result<Outcome> {
    let (asked, book) = pricing.asked()?;
    let profiles: anyhow::Result<Vec<Profile>> =
        on.iter().map(|name| Ok(read_device(name)?)).collect();
    let question = Question { seed, ..Question::default() };
    let p99_ms = pricing.p99_ms();
    let limits = Limits { p99_ms, kind: &pricing.kind, asked: &asked, book: &book, apart };
    let (found, stopped) = placements(prefix, &question, &profiles?, &limits, &context.view)?;
    if context.json {
        output::json(&found)?;
    } else {
        print_choice(&found.choice, pricing)?;
        if let (true, Some(fastest)) = (apart, found.fastest.first()) {
            let others = if found.may_be_as_fast.is_empty() {
                "no other interval reaches it".to_owned()
            } else {
                format!("cannot be told from {}", found.may_be_as_fast.join(", "))
            };
            output::print(&format!("Fastest: {fastest}; {others}.\n"))?;
        }
        for line in &found.rests_on {
            output::print(&format!("rests on {line}\n"))?;
        }
    }
    Ok(if stopped { Outcome::Interrupted } else { verdict(&found.choice) })
}

/// Figures without any price are an answer too; offers none of which is sure to keep the limit
/// allow no verdict.
fn verdict(choice: &Choice) -> Outcome {
    let has_price = choice.ranked.iter().any(|ranked| ranked.per_million.is_some());
    if choice.best.is_none() && has_price { Outcome::NoVerdict } else { Outcome::Fine }
}

fn print_choice(choice: &Choice, pricing: &Pricing) -> anyhow::Result<()> {
    let rows = text::choice(choice, pricing.p99_ms(), &pricing.currency.to_uppercase());
    output::print(&output::table(&rows))?;
    lines(&text::conclusion(choice))
}

fn lines(lines: &[String]) -> anyhow::Result<()> {
    lines.iter().try_for_each(|line| output::print(&format!("{line}\n")))
}

fn read_result(path: &std::path::Path) -> anyhow::Result<StudyResult> {
    let file = if path.is_dir() { path.join(run_dir::RESULT) } else { path.to_owned() };
    Ok(run_dir::read_json(&file)?)
}

fn lives(arguments: AdviseLife, context: &Context) -> anyhow::Result<Outcome> {
    let given = arguments.write.into_iter();
    let mut classes: Vec<ClassRate> =
        given.map(|(class, bytes_per_s)| ClassRate { class, bytes_per_s }).collect();
    if let Some(path) = &arguments.result {
        classes = written(&read_result(path)?);
    }
    if let Some(from) = arguments.from.as_ref()
        && advise::space::date_after(from, 0.0).is_none()
    {
        let hint = "a date is YYYY-MM-DD, such as 2026-11-24";
        return Err(Advice::error(format!("--from {from}: not a date"), hint));
    }
    let load = LoadOf {
        written: classes,
        amplification: arguments.amplification,
        iops: arguments.iops,
        bytes_per_s: arguments.throughput,
        free: arguments.free,
        grows_per_day: arguments.grows,
        from: arguments.from,
    };
    let mut found = Vec::new();
    for name in &arguments.profile {
        found.push(life(&read_profile(name)?, &load)?);
    }
    if context.json {
        output::json(&found)?;
    } else {
        for own in &found {
            lines(&text::life(own))?;
        }
    }
    Ok(Outcome::Fine)
}

fn what_if(what: WhatIf, context: &Context) -> anyhow::Result<Outcome> {
    let answers = match what {
        WhatIf::Faster(asked) => faster(&asked)?,
        WhatIf::Balance(asked) => balance(&asked)?,
        WhatIf::Relaxed(Relaxed { commits, log_share, window }) => {
            let relaxed = speed_up::Relaxed {
                commits_per_s: commits,
                log_share,
                window_s: window.as_secs_f64(),
            };
            relaxed.answers()?.into()
        }
        WhatIf::Memory(asked) => memory(&asked)?,
    };
    if context.json {
        output::json(&answers)?;
    } else {
        for answer in &answers {
            lines(&text::answer(answer))?;
        }
    }
    Ok(Outcome::Fine)
}

fn faster(asked: &Faster) -> anyhow::Result<Vec<Answer>> {
    let share = match (&asked.share, &asked.result) {
        (Some(share), _) => *share,
        (None, Some(path)) => Interval::exact(read_result(path)?.oltp.device_share),
        (None, None) => unreachable!("one of them is required"),
    };
    Ok(vec![speed_up::faster(&asked.part, share, asked.times)?])
}

fn balance(asked: &Balance) -> anyhow::Result<Vec<Answer>> {
    let processor = Processor {
        clock_hz: asked.clock * 1e9,
        cycles_per_instruction: asked.cpi,
        instructions_per_byte: asked.instructions_per_byte,
        page_bytes: asked.page.0 as f64,
        read_share: asked.read_share,
    };
    let mean = match asked.mean {
        MeanName::Harmonic => Mean::Harmonic,
        MeanName::Arithmetic => Mean::Arithmetic,
    };
    let rates = Rates { reads_per_s: asked.reads, writes_per_s: asked.writes };
    Ok(vec![processor.answer(&rates, mean)?])
}

fn memory(asked: &Memory) -> anyhow::Result<Vec<Answer>> {
    let rule = BreakEven {
        page_bytes: asked.page.0 as f64,
        reads_per_s: asked.reads,
        device_price: asked.device_price,
        memory_price_per_gb: asked.price_per_gb,
    };
    let mut answers = vec![rule.answer()?];
    if let (Some(data), Some(buffer), Some(misses)) = (asked.data, asked.buffer, asked.misses) {
        let pages = Pages {
            data_bytes: data.0 as f64,
            buffer_bytes: buffer.0 as f64,
            misses_per_s: misses,
        };
        answers.push(rule.verdict(&pages)?);
    }
    Ok(answers)
}
